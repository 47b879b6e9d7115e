import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { CAUSE_NODES_MAX, CAUSES_MAX, type Failure, FailureCauses } from './failure-causes.ts';

const failure = (says: string, change: Partial<Failure> = {}): Failure => ({
  nodeId: 'a',
  failure: 'server-error',
  status: 500,
  says,
  ...change,
});

describe('causes of failures', () => {
  test('are the same where only numbers, names and quotes differ', () => {
    const causes = new FailureCauses();
    causes.note(failure('CUDA out of memory. Tried to allocate 2.50 GiB (GPU 0; 39.6 GiB total)'), 1);
    causes.note(
      failure('CUDA out of memory. Tried to allocate 512 MiB (GPU 3; 79.1 GiB total)', { nodeId: 'b' }),
      2,
    );
    causes.note(
      failure('CUDA out of memory. Tried to allocate 1.00 GiB (GPU 0; 39.6 GiB total)', { nodeId: 'b' }),
      3,
    );
    causes.note(failure('Template for "my secret prompt" failed'), 4);
    causes.note(failure("Template for 'another' failed"), 5);
    expect(causes.rows()).toEqual([
      {
        id: 1,
        failure: 'server-error',
        status: 500,
        pattern: 'CUDA out of memory. Tried to allocate * * (GPU * * GiB total)',
        count: 3,
        node: 'b',
        onNode: 2,
        nodes: 2,
        firstAt: 1,
        lastAt: 3,
      },
      expect.objectContaining({ pattern: 'Template for * failed', count: 2 }),
    ]);
  });

  test('are told apart by kind, status, length and first words', () => {
    const causes = new FailureCauses();
    causes.note(failure('engine is dead'), 1);
    causes.note(failure('engine is dead', { status: 502 }), 1);
    causes.note(failure('engine is dead', { failure: 'reset', status: 0 }), 1);
    causes.note(failure('engine is dead again'), 1);
    causes.note(failure('worker is dead'), 1);
    causes.note(failure(''), 1);
    causes.note(failure(''), 2);
    expect(causes.rows().map(({ pattern, count }) => [pattern, count])).toEqual([
      ['', 2],
      ['engine is dead', 1],
      ['engine is dead', 1],
      ['engine is dead', 1],
      ['engine is dead again', 1],
      ['worker is dead', 1],
    ]);
  });

  test('lose none but those that were not seen for longest, whatever nodes say', () => {
    const said = fc.record({
      says: fc.oneof(
        fc.string({ maxLength: 600 }),
        fc.constantFrom('out of memory at 1', 'out of memory at 2'),
      ),
      node: fc.integer({ min: 0, max: 200 }),
    });
    fc.assert(
      fc.property(fc.array(said, { maxLength: 300 }), (all) => {
        const causes = new FailureCauses();
        for (const [at, { says, node }] of all.entries())
          causes.note(failure(says, { nodeId: `n${node}` }), at);
        const rows = causes.rows();
        expect(rows.length).toBeLessThanOrEqual(CAUSES_MAX);
        for (const { pattern, nodes, onNode, count } of rows) {
          expect(pattern).not.toMatch(/[\p{C}\d"`]/u);
          expect(nodes).toBeLessThanOrEqual(CAUSE_NODES_MAX);
          expect(onNode).toBeLessThanOrEqual(count);
        }
        const counted = rows.reduce((sum, { count }) => sum + count, 0);
        if (rows.length < CAUSES_MAX) expect(counted).toBe(all.length);
        else expect(counted).toBeLessThanOrEqual(all.length);
        if (all.length > 0) expect(Math.max(...rows.map(({ lastAt }) => lastAt))).toBe(all.length - 1);
      }),
    );
  });
});
