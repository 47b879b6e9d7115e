/**
 * Heads of answers: what a client is told of its request beside the answer itself. As flat headers before what a node, or
 * nobody, worked out; as lines on the wire before a refusal, since the price of a refusal matters most when all are refused.
 */
import type { LimitsView } from '../../core/request/index.ts';
import { limitHeaders, limitLines } from '../outcomes/limit-headers.ts';
import { BEACON_HEADER } from '../user-side/beacon-desk.ts';
import type { ExchangeSpec } from './contract.ts';
import type { NodeHead } from './response-headers.ts';
import type { Witness } from './witness.ts';

/** What every answer but a refusal bears. */
export function ownHeaders(
  { requestId, submit, lesser }: ExchangeSpec,
  known: Witness,
  limits: LimitsView | undefined,
): string[] {
  const { publicId, attempts } = known;
  // The wait for an attempt; what needed none tells of no wait.
  const waitedUs = attempts > 0 ? known.queueWaitUs : 0;
  const headers = [
    'x-spillway-id',
    publicId,
    'x-request-id',
    requestId === '' ? publicId : requestId,
    'x-spillway-class',
    submit.className,
    'x-spillway-queue-ms',
    String(Math.max(0, Math.round(waitedUs / 1_000))),
    'x-spillway-attempts',
    String(attempts),
  ];
  if (limits !== undefined) headers.push(...limitHeaders(limits));
  const token = known.beaconToken();
  if (token !== '') headers.push(BEACON_HEADER, token);
  if (lesser?.current !== undefined) headers.push('x-spillway-degraded', lesser.label);
  return headers;
}

/** Adds what a client may see of the node's head, and of the node itself. Not the length, which a mark changes. */
export function addNodeHead(headers: string[], { passed }: NodeHead, known: Witness): void {
  headers.push(...passed);
  headers.push('x-spillway-overhead-us', String(Math.max(0, Math.round(known.overheadUs))));
  const { visibleNode } = known;
  if (visibleNode !== '') headers.push('x-spillway-node', visibleNode);
}

/** What stands before the lines of a refusal. Without an attempt all was waiting, until the end that the witness knows by now. */
export function ownLines(
  { requestId, submit }: ExchangeSpec,
  known: Witness,
  limits: LimitsView | undefined,
): string {
  const { publicId: id, attempts } = known;
  const waitedMs = Math.max(0, Math.round(known.queueWaitUs / 1_000));
  // Our ids, names of the configuration, numbers, and a client's id that is plain (see `scanHead`).
  const own = `x-spillway-id: ${id}\r\nx-request-id: ${requestId === '' ? id : requestId}\r\nx-spillway-class: ${submit.className}\r\nx-spillway-queue-ms: ${waitedMs}\r\nx-spillway-attempts: ${attempts}\r\n`;
  const left = limits === undefined ? '' : limitLines(limits);
  const token = known.beaconToken();
  const beacon = token === '' ? '' : `${BEACON_HEADER}: ${token}\r\n`;
  return own + left + beacon;
}
