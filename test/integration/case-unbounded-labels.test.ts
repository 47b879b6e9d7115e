/**
 * Unbounded labels (publicly reported as llm-d/llm-d-router#2119): every name that a client makes up becomes a label
 * set, and the process grows until it is killed. A gateway process of its own gets as many distinct names of every
 * kind as fit into some seconds. What a million would do follows from what is asserted: once the names that somebody
 * configured are in the page, not one label set more appears, however many names come. `metrics-page.test.ts` gives the page
 * itself a million, all of which count as known.
 */
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type CaseBench, createCaseBench, sendMany, type Wish } from '../support/case-bench.ts';
import { INSPECTED, liveBytesOf } from '../support/live-heap.ts';
import { call, createFixture, type Fixture } from './cli-fixture.ts';
import { completion, sendJson } from './edge-fixture.ts';

/** More than the metrics page gives a name of their own. */
const TENANTS = 300;
const MODELS = 400;
const NAMES_SHOWN = 200;
/** Beyond the bounds on requests and answers that are kept, so that the process keeps as much as it ever will. */
const WARM = 48_000;
const MORE = 40_000;
const CONCURRENCY = 48;
let bench: CaseBench;
let fixture: Fixture;

beforeEach(() => {
  bench = createCaseBench();
  fixture = createFixture();
});

afterEach(async () => {
  await bench.end();
  await fixture.end();
});

const keyOf = (tenant: number): string => `secret-of-tenant-${tenant}`;

/** Names that nobody has used before, in every place where a client may put one. */
function wishOf(index: number): Wish {
  const name = `made-up-${index}`;
  const isServed = index % 2 === 0;
  return {
    model: isServed ? `offered-${(index / 2) % MODELS}` : `model-${name}`,
    className: `class-${name}`,
    headers: {
      authorization: `Bearer ${index % 8 === 7 ? `key-${name}` : keyOf(index % TENANTS)}`,
      'x-request-id': `id-${name}`,
      'x-spillway-session': `session-${name}`,
      'x-llm-d-inference-objective': `objective-${name}`,
      'x-llm-d-inference-fairness-id': `fairness-${name}`,
      'idempotency-key': `idempotency-${name}`,
      'user-agent': `agent-${name}`,
      [`x-${name}`]: name,
    },
    body: { user: `user-${name}`, service_tier: `tier-${name}`, seed: index, [name]: name },
  };
}

interface Page {
  readonly labelSets: readonly string[];
  readonly bytes: number;
  readonly text: string;
}

async function readPage(adminUrl: string, token: string): Promise<Page> {
  const { text } = await call(`${adminUrl}/metrics`, { token });
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return {
    labelSets: lines.map((line) => line.slice(0, line.lastIndexOf(' '))).sort(),
    bytes: text.length,
    text,
  };
}

describe('names that clients make up', () => {
  it('leave the metrics page and the memory of the gateway as they are', async () => {
    const node = await bench.node((res) => sendJson(res, 200, completion('hello')));
    const file = join(fixture.folder, 'gateway.yaml');
    const tenants = Array.from({ length: TENANTS }, (_, tenant) => ({
      id: `tenant-${tenant}`,
      keys: [{ id: `key-${tenant}`, sha256: createHash('sha256').update(keyOf(tenant)).digest('hex') }],
    }));
    const models = Array.from({ length: MODELS }, (_, i) => ({ model: `offered-${i}` }));
    const nodes = [{ id: 'one', url: node.url, slots: 64, models }];
    // As many keys as are remembered come while the process grows to its full size.
    writeFileSync(file, stringify({ tenants, nodes, idempotency: { entriesMax: 1_000 } }));
    const gateway = await fixture.serve(['--config', file], INSPECTED);
    const { document } = gateway;
    const token = readFileSync(document.adminTokenFile, 'utf8').trim();
    const client = bench.client(document.dataUrl);
    const run = (from: number, count: number): Promise<unknown> =>
      sendMany(client, { count, concurrency: CONCURRENCY, wish: (index) => wishOf(from + index) });

    await run(0, WARM);
    const warm = await readPage(document.adminUrl, token);
    const warmBytes = await liveBytesOf(gateway);
    await run(WARM, MORE);
    for (const path of Array.from({ length: 500 }, (_, i) => `/v1/path-${i}`)) {
      expect((await call(`${document.dataUrl}${path}`)).status).toBe(404);
    }
    const after = await readPage(document.adminUrl, token);
    const afterBytes = await liveBytesOf(gateway);

    expect(after.text, 'no name of a client').not.toContain('made-up-');
    expect(after.text).not.toContain('path-4');
    const added = after.labelSets.filter((set) => !warm.labelSets.includes(set));
    expect(added, 'only the outcome of the unknown paths is new').toEqual(
      added.filter((set) => set.includes('outcome="unknown-path"')),
    );
    for (const label of ['tenant="tenant-', 'model="offered-']) {
      const shown = new Set(after.text.match(new RegExp(`${label}\\d+"`, 'g')));
      expect(shown.size, label).toBeLessThanOrEqual(NAMES_SHOWN);
    }
    expect(after.text, 'the rest is counted together').toMatch(
      /^spillway_requests_total\{.*model="other",outcome="served"\} \d+$/m,
    );
    expect(after.bytes).toBeLessThan(warm.bytes * 1.1);
    expect(afterBytes / warmBytes, `memory kept alive: ${warmBytes}, then ${afterBytes} bytes`).toBeLessThan(
      1.1,
    );
    const count = (outcome: string): number =>
      [...after.text.matchAll(/^spillway_requests_total\{([^}]*)\} (\d+)$/gm)]
        .filter(([, labels]) => labels?.includes(`outcome="${outcome}"`))
        .reduce((sum, [, , value]) => sum + Number(value), 0);
    const total = WARM + MORE;
    expect([count('unauthenticated'), count('unknown-model')], 'every one is counted all the same').toEqual([
      total / 8,
      total / 2 - total / 8,
    ]);
  });
});
