import fc from 'fast-check';
import { expect, test } from 'vitest';
import { nodeSpec } from '../../../test/support/specs.ts';
import { defaultSchedulerConfig } from '../config/defaults.ts';
import { NodeRecord } from '../health/node-record.ts';
import { Fleet } from './fleet.ts';

const CONFIG = defaultSchedulerConfig();
const NODES = 5;

test('Pool.fastest is the open node with the greatest speed, the first of equals, whoever became faster or slower or closed', () => {
  const change = fc.record({
    node: fc.nat({ max: NODES - 1 }),
    rate: fc.integer({ min: 1, max: 8 }),
    isClosed: fc.boolean(),
    isAsked: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(change, { maxLength: 60, size: 'max' }), (changes) => {
      const fleet = new Fleet([]);
      const nodes = Array.from({ length: NODES }, (_, order) => new NodeRecord(nodeSpec(`n${order}`), order));
      for (const node of nodes) fleet.seat(node);
      for (const { node: at, rate, isClosed, isAsked } of changes) {
        const node = nodes[at] as NodeRecord;
        node.restoreRate('', rate / 2, 50);
        node.cordoned = isClosed;
        fleet.place(node, 0, CONFIG);
        if (!isAsked) continue;
        const indexed = nodes.filter((each) => each.isSeatedFor('m'));
        const best = indexed.sort((a, b) => b.soloRate - a.soloRate || a.order - b.order)[0];
        expect(node.firstSeat?.pool.fastest()).toBe(best);
      }
    }),
    { numRuns: 60 },
  );
});
