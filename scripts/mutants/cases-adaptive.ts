/** Protections by what is learned of nodes: bounds on silence and on tasks at once. */
import { edit, type KnownCase, removal } from './known-case.ts';

const CORE = 'src/core';
const PATIENCE = `${CORE}/scheduler/patience.ts`;
const TIMEOUTS = `${CORE}/capacity/timeouts.ts`;
const CONCURRENCY = `${CORE}/capacity/concurrency.ts`;
const LIMITED = `${CORE}/scheduler/concurrency.ts`;

const HANGS = 'a node that accepts requests and never answers';
const OPAQUE = 'an engine that states no slots and tells no load';

export const ADAPTIVE_CASES: readonly KnownCase[] = [
  {
    name: 'Hung node',
    reports: [],
    symptom: 'A node takes requests and falls silent; each waits there until its deadline.',
    promise:
      'Silence is bounded by what is learned of model, size and node: the request is served by another node where that is possible. A node that is only slower, and one that nobody can stand in for, is not cut for ever.',
    test: 'adaptive-timeouts.test.ts',
    also: [`${CORE}/capacity/timeouts.test.ts`, `${CORE}/scheduler/patience.test.ts`],
    removals: [
      removal('a whole answer has a bound on the silence before it', `${HANGS} > holds nobody`, [
        edit(PATIENCE, 'return { firstByteUs: task.firstByteLimitUs,', 'return { firstByteUs: 0,'),
      ]),
      removal('the bound is learned from answers', 'a stream > that is silent before', [
        edit(PATIENCE, '  state.timeouts.learn(kind, sample);\n', ''),
      ]),
      removal('the first content of a stream has a bound', 'a stream > that is silent before', [
        edit(
          PATIENCE,
          'if (state.now + limitUs < task.deadlineAt) task',
          'if (!task.isStream && state.now + limitUs < task.deadlineAt) task',
        ),
      ]),
      removal('silence inside a stream has a bound', 'a stream > that falls silent', [
        edit(PATIENCE, 'if (Number.isFinite(idleUs)) task', 'if (idleUs < 0) task'),
      ]),
      removal('silence inside streams is learned from streams', 'a stream > that falls silent', [
        edit(TIMEOUTS, 'if (isNear(sample) || rate === 0 ||', 'if (isNear(sample) || rate >= 0 ||'),
      ]),
      removal('a node that was cut has twice the time next', 'a node that is slower from now on', [
        edit(PATIENCE, '  node.patience.cut(task.decidedAt, state.now);\n', ''),
      ]),
      removal('where no other node could take over nothing is cut', 'a lone node that is slow', [
        edit(PATIENCE, 'return open > 1 + (task.triedNodes?.length ?? 0);', 'return open > 0;'),
      ]),
      removal('in shadow nothing is cut', `${HANGS} > in shadow`, [
        edit(
          PATIENCE,
          "state.config.gates.timeouts !== 'on') return NO_LIMITS",
          "state.config.gates.timeouts === 'off') return NO_LIMITS",
        ),
      ]),
    ],
  },
  {
    name: 'Overcrowded engine',
    reports: [],
    symptom:
      'An engine that states no slots and tells no load is sent whatever comes: the rest waits inside it, where nobody can order or drop it.',
    promise:
      'It is held to about what it does at once, learned from its pace, and the rest waits in the gateway.',
    test: 'adaptive-concurrency.test.ts',
    also: [`${CORE}/capacity/concurrency.test.ts`, `${CORE}/scheduler/concurrency.test.ts`],
    removals: [
      removal('the learned number holds', `${OPAQUE} > is held`, [
        edit(LIMITED, 'node.slotsLearned = node.concurrency.limit;', 'node.slotsLearned = 0;'),
      ]),
      removal('it is learned from answers', `${OPAQUE} > is held`, [
        edit(LIMITED, '  node.concurrency?.observe(done, state.now);\n', ''),
      ]),
      removal('it falls when tasks beside each other take longer', `${OPAQUE} > is held`, [
        edit(
          CONCURRENCY,
          'const wanted = this.#exact * gradient * (isCrowded ? CROWDED_PART : 1) + headroom;',
          'const wanted = this.#exact + headroom;',
        ),
      ]),
      removal(
        'the pace of few is measured anew, and more at once that only wait count',
        `${OPAQUE} > is held`,
        [
          edit(CONCURRENCY, '    if (this.#shouldMeasure(now)) this.#startMeasuring(now);\n', ''),
          edit(CONCURRENCY, 'return together / spread > SLOPE_MAX;', 'return false;'),
        ],
      ),
      removal('in shadow the fixed number holds', `${OPAQUE} > in shadow`, [
        edit(LIMITED, "if (!state.gates.isOn('concurrency')) node.slotsLearned = 0;\n  else if", 'if'),
      ]),
    ],
  },
];
