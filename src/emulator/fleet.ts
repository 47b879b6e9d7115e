/**
 * An emulated fleet: any number of nodes, each on a port of its own on the loopback interface, and one control port.
 *
 *   GET  /truth                  what every node really did
 *   GET  /nodes                  id, url and faults of every node
 *   POST /nodes/{id}/faults      switch faults; the body is a part of `Faults`
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type EmulatorClock, realClock } from './clock.ts';
import { type FaultChange, parseFaultChange } from './faults.ts';
import { type EmulatedNode, startEmulatedNode } from './node-server.ts';
import { type EmulatedFleetInput, parseFleetSpec } from './spec.ts';
import type { NodeTruth } from './truth.ts';

const CONTROL_BODY_BYTES_MAX = 65_536;

export interface EmulatedFleet {
  readonly controlUrl: string;
  readonly nodes: readonly EmulatedNode[];
  /** Throws for an id that is not in the fleet. */
  setFaults(id: string, change: FaultChange): Promise<void>;
  truth(): readonly NodeTruth[];
  close(): Promise<void>;
}

/** The specification is wrong; the message lists every problem. */
export class FleetSpecError extends Error {
  override readonly name = 'FleetSpecError';
}

export async function startEmulatedFleet(
  input: EmulatedFleetInput,
  clock: EmulatorClock = realClock,
): Promise<EmulatedFleet> {
  const parsed = parseFleetSpec(input);
  if (parsed.kind === 'invalid')
    throw new FleetSpecError(`Cannot start the emulated fleet: ${parsed.detail}`);
  const { spec } = parsed;
  const nodes: EmulatedNode[] = [];
  const control = createServer((request, response) => void answerControl(nodes, request, response));
  try {
    for (const node of spec.nodes) nodes.push(await startEmulatedNode(node, spec, clock));
    const port = await listenControl(control, spec.controlPort);
    return {
      controlUrl: `http://127.0.0.1:${port}`,
      nodes,
      setFaults: (id, change) => nodeOf(nodes, id).setFaults(change),
      truth: () => nodes.map((node) => node.truth()),
      close: () => closeAll(nodes, control),
    };
  } catch (error) {
    await closeAll(nodes, control);
    throw error;
  }
}

function nodeOf(nodes: readonly EmulatedNode[], id: string): EmulatedNode {
  const node = nodes.find((candidate) => candidate.id === id);
  if (node === undefined) throw new FleetSpecError(`Cannot find the emulated node ${id}`);
  return node;
}

function listenControl(server: Server, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', () => resolve((server.address() as AddressInfo).port));
  });
}

async function closeAll(nodes: readonly EmulatedNode[], control: Server): Promise<void> {
  await Promise.all(nodes.map((node) => node.close()));
  if (!control.listening) return;
  await new Promise<void>((resolve) => {
    control.close(() => resolve());
    control.closeAllConnections();
  });
}

async function answerControl(
  nodes: readonly EmulatedNode[],
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const path = request.url ?? '';
  if (request.method === 'GET' && path === '/truth') {
    return send(
      response,
      200,
      nodes.map((node) => node.truth()),
    );
  }
  if (request.method === 'GET' && path === '/nodes') {
    const rows = nodes.map((node) => ({ id: node.id, url: node.url, emulated: true, faults: node.faults() }));
    return send(response, 200, rows);
  }
  const match = /^\/nodes\/([^/]+)\/faults$/.exec(path);
  const node =
    match === null ? undefined : nodes.find((one) => one.id === decodeURIComponent(match[1] ?? ''));
  if (request.method !== 'POST' || node === undefined)
    return send(response, 404, { detail: 'No such control' });
  const change = parseFaultChange(await readJson(request));
  if (change.kind === 'invalid') return send(response, 400, { detail: change.detail });
  await node.setFaults(change.change);
  return send(response, 200, { id: node.id, faults: node.faults() });
}

/** Undefined for what is not JSON or too large; the schema refuses it. */
async function readJson(request: IncomingMessage): Promise<unknown> {
  let text = '';
  try {
    for await (const chunk of request as AsyncIterable<Buffer>) {
      text += chunk.toString('utf8');
      if (text.length > CONTROL_BODY_BYTES_MAX) return undefined;
    }
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function send(response: ServerResponse, status: number, value: unknown): void {
  const body = JSON.stringify(value);
  response.writeHead(status, { 'content-type': 'application/json', 'x-emulated': '1' });
  response.end(body);
}
