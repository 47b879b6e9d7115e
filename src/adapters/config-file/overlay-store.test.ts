import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import {
  OVERLAY_FILE,
  openOverlayStore,
  type OverlayState,
  type OverlayStore,
  VERSIONS_MAX,
} from './overlay-store.ts';

let folder = '';

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'spillway-overlay-'));
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

function open(where = folder): OverlayStore {
  const opened = openOverlayStore(where);
  if (opened.kind === 'refused') throw new Error(opened.rule);
  return opened.store;
}

function next({ version, history }: OverlayState, tasksMax: number): OverlayState {
  const overlay = { bounds: { tasksMax } };
  const row = { version: version + 1, at: 0, who: 'a', why: 'b', changed: [], overlay };
  return {
    version: version + 1,
    overlay,
    setIn: { 'bounds.tasksMax': version + 1 },
    history: [...history, row],
  };
}

test('openOverlayStore finds what was committed, in a file that only its owner reads', async () => {
  const store = open();
  expect(store.state.version).toBe(0);
  await store.commit(next(store.state, 5));
  await store.commit(next(store.state, 6));
  expect(open().state).toEqual(store.state);
  expect(open().state).toMatchObject({ version: 2, overlay: { bounds: { tasksMax: 6 } } });
  expect(statSync(join(folder, OVERLAY_FILE)).mode & 0o777).toBe(0o600);
  expect(readdirSync(folder), 'no neighbour is left').toEqual([OVERLAY_FILE]);
});

test('openOverlayStore keeps the last versions and forgets the oldest', async () => {
  const store = open('');
  for (let i = 0; i < VERSIONS_MAX + 3; i++) await store.commit(next(store.state, i + 1));
  expect(store.state.history).toHaveLength(VERSIONS_MAX);
  expect([store.state.history[0]?.version, store.state.version]).toEqual([4, VERSIONS_MAX + 3]);
  expect(store.durable).toBe(false);
});

test.each([
  ['no JSON', '{'],
  ['another format', '{"format": 2}'],
  ['a list', '[]'],
  ['no overlay', '{"format": 1, "version": 1, "setIn": {}, "history": []}'],
])('openOverlayStore refuses %s and leaves the file alone', (_name, text) => {
  const file = join(folder, OVERLAY_FILE);
  writeFileSync(file, text);
  expect(openOverlayStore(folder)).toMatchObject({
    kind: 'refused',
    file,
    rule: expect.stringMatching(/^Expected/),
  });
});

test('commit rejects and keeps the state when the folder is gone', async () => {
  const store = open();
  await store.commit(next(store.state, 5));
  const before = store.state;
  rmSync(folder, { recursive: true });
  await expect(store.commit(next(before, 6))).rejects.toThrow(/ENOENT/);
  expect(store.state).toBe(before);
});
