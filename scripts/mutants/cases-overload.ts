/** Protections while demand is more than the nodes can do: the ladder, lesser answers, preemption, retries. */
import { edit, type KnownCase, removal } from './known-case.ts';

const CORE = 'src/core';
const SCHEDULER = `${CORE}/scheduler`;
const OVERLOAD = `${CORE}/overload`;
const MODEL_LADDER = `${OVERLOAD}/model-ladder.ts`;
const SHED = `${SCHEDULER}/shed-by-ladder.ts`;
const PREEMPT = `${SCHEDULER}/preempt.ts`;
const RETRY_SHED = `${CORE}/admission/retry-shed.ts`;
const ATTEMPTS = `${SCHEDULER}/attempts.ts`;

const BY_HAND = 'the ladder set by hand';
const QUEUE = 'the queue > leads to stage 2';
const MISSES = 'missed deadlines > beside a queue';
const FULL_NODE = 'a critical request at a full node';
const SPARED = 'nobody has to leave';
const FAILING = 'a fleet that fails everywhere';

export const OVERLOAD_CASES: readonly KnownCase[] = [
  {
    name: 'Overload that everybody pays for',
    reports: [],
    symptom:
      'While demand is more than the nodes can do the least important requests take from the most important ones.',
    promise:
      'By the evidence of memory, queue and missed deadlines, stage by stage: lesser answers first, then a shorter queue for all but the first class, then the first class alone and one in a hundred of the others. Each stage ends by itself.',
    test: 'ladder.test.ts',
    also: [`${OVERLOAD}/ladder.test.ts`, `${OVERLOAD}/model-ladder.test.ts`, `${OVERLOAD}/trigger.test.ts`],
    removals: [
      removal('full memory of accelerators raises stage 1', 'memory > is the cache use', [
        edit(MODEL_LADDER, 'return this.memory.isLit ? 1 : 0;', 'return 0;'),
      ]),
      removal('what an engine takes at start is no use of its memory', 'memory > is what a node tells', [
        edit(
          `${OVERLOAD}/accelerator-memory.ts`,
          'return Math.max(0, (this.#deviceUse - floor) / (1 - floor));',
          'return this.#deviceUse + 0 * floor;',
        ),
      ]),
      removal('unknown memory is not full', 'memory > is unknown', [
        edit(`${OVERLOAD}/evidence.ts`, 'told === 0 || told * 2 < open ? undefined :', 'told === 0 ? 1 :'),
        edit(
          `${OVERLOAD}/ladder.ts`,
          'this.#readsMemory ? memoryEvidence(ladder.lanes, now) : undefined',
          'memoryEvidence(ladder.lanes, now)',
        ),
      ]),
      removal('a queue alone raises stage 2, whatever is known of memory', QUEUE, [
        edit(
          MODEL_LADDER,
          'if (this.queue.isLit) return',
          'if (this.queue.isLit && this.memory.isLit) return',
        ),
      ]),
      removal('a stage ends without completed work', QUEUE, [
        edit(MODEL_LADDER, 'if (stage === 0 || now < this.expiresAt) return false;', 'return false;'),
      ]),
      removal('stage 2 refuses', QUEUE, [
        edit(SHED, 'if (!isOff && (stage < 2 || index', 'if (!isOff && (stage < 9 || index'),
      ]),
      removal('stage 2 spares the first class', QUEUE, [
        edit(SHED, 'stage < 2 || index === 0 ||', 'stage < 2 ||'),
      ]),
      removal('missed deadlines beside a queue raise stage 3', MISSES, [
        edit(MODEL_LADDER, 'return this.misses.isLit && !this.#isFirstClassFine ? 3 : 2;', 'return 2;'),
      ]),
      removal('who leaves the queue at the deadline counts as a miss', MISSES, [
        edit(
          `${SCHEDULER}/settle.ts`,
          '    task.ladder?.noteDeadline(task.flow.classRecord.index, false, state.now);\n    tallyExpired(lane, task);\n',
          '    tallyExpired(lane, task);\n',
        ),
      ]),
      removal('stage 3 refuses', MISSES, [
        edit(SHED, 'if (stage === 3 && index > 0', 'if (stage > 3 && index > 0'),
      ]),
      removal('stage 3 spares the first class', `${BY_HAND} > refuses all but`, [
        edit(SHED, 'stage === 3 && index > 0 &&', 'stage === 3 &&'),
      ]),
      removal('one in a hundred of a refused class passes', `${BY_HAND} > lets one in a hundred`, [
        edit(MODEL_LADDER, 'return arrived % TRICKLE_PARTS === 0;', 'return arrived < 0;'),
      ]),
      removal('a stage that was set by hand ends by itself', `${BY_HAND} > refuses all but`, [
        edit(`${OVERLOAD}/override.ts`, 'until: now + forUs,', 'until: now + 10 * forUs,'),
      ]),
      removal('in shadow nothing is refused', `${BY_HAND} > is refused while the gate`, [
        edit(
          SHED,
          "if (cause === '' || !state.gates.refuses('ladder')) return null;",
          "if (cause === '' || (state.gates.refuses('ladder'), false)) return null;",
        ),
      ]),
      removal('from stage 1 on the last class begins with a lesser answer', 'lesser answers > come first', [
        edit(
          `${SCHEDULER}/submit.ts`,
          '&& beginsWithLess(state, task)) {',
          '&& beginsWithLess(state, task) && state.now < 0) {',
        ),
      ]),
      removal('that is for the last class alone', 'lesser answers > come first', [
        edit(`${OVERLOAD}/ladder.ts`, 'classIndex === this.#classes - 1 &&', 'classIndex > 0 &&'),
      ]),
      removal(
        'optional models are switched off while another one needs their nodes',
        'an optional model > is switched off',
        [edit(`${OVERLOAD}/ladder.ts`, 'return this.#pressedDomains.has(domainOf(lane));', 'return false;')],
      ),
    ],
  },
  {
    name: 'First class behind long work',
    reports: [],
    symptom:
      'Every node is full of long work of the lowest class, and what must not wait comes too late, or running work is thrown away without measure.',
    promise:
      'Who would come too late takes the place of the newest of the lowest class that has had nothing of an answer, within a budget; that one waits again, or is told why it cannot.',
    test: 'preemption.test.ts',
    also: [`${SCHEDULER}/preempt.test.ts`],
    removals: [
      removal('a place is taken for who would come too late', `${FULL_NODE} > gets the place of a low one`, [
        edit(PREEMPT, 'if (victim === null) return;', 'if (victim === null || state.now > 0) return;'),
      ]),
      removal('who gave its place waits again', `${FULL_NODE} > gets the place of a low one`, [
        edit(PREEMPT, "? makeWay(state, lane, task) : 'refused';", "? 'refused' : 'refused';"),
      ]),
      removal('who cannot wait again is told why', `${FULL_NODE} > tells a low one`, [
        edit(
          `${SCHEDULER}/settle.ts`,
          "reason: 'preempted', hint, cause: GAVE_WAY }",
          "reason: 'evicted', hint }",
        ),
      ]),
      removal('the place is for who it was taken for', `${FULL_NODE} > gets the place although`, [
        edit(
          PREEMPT,
          '  refreshNode(state, node);\n  takePlace(state, heir, node);\n',
          '  refreshNode(state, node);\n',
        ),
      ]),
      removal('nobody leaves while a node will be free in time', `${SPARED} > while the node`, [
        edit(PREEMPT, ' || !isTooLate(state, lane, task)) return;', ') return;'),
      ]),
      removal('nobody leaves whose answer has begun', `${SPARED} > whose answer`, [
        edit(PREEMPT, 'other.hasFirstByte || other.isAnswering || ', ''),
      ]),
      removal('work that is thrown away is paid for', `${SPARED} > beyond the budget`, [
        edit(
          PREEMPT,
          '  if (!state.preemptions.budget.withdraw(lostUs(state, victim), state.now, state.config.preemption)) return;\n',
          '',
        ),
      ]),
      removal('in shadow nobody leaves', `${SPARED} > in shadow`, [
        edit(
          PREEMPT,
          "  if (!state.gates.refuses('preemption')) return;\n",
          "  state.gates.refuses('preemption');\n",
        ),
      ]),
    ],
  },
  {
    name: 'Retries that keep an overload alive',
    reports: [],
    symptom:
      'A failing fleet is asked to do everything again and again, and who comes back at once takes the places of those who come for the first time.',
    promise:
      'Retries by the gateway are paid for from a budget, are bounded, and never follow a part of an answer. Who was refused is told a time of its own, has a place then, and none before.',
    test: 'retries.test.ts',
    also: [
      `${CORE}/retry/budget.test.ts`,
      `${CORE}/admission/retry-shed.test.ts`,
      `${CORE}/admission/retry-marks.test.ts`,
    ],
    removals: [
      removal('retries are paid for from a budget', `${FAILING} > is asked again`, [
        edit(
          ATTEMPTS,
          'return hasOtherNode(state, lane, task) && state.budget.withdraw(task.workUs, state.now, config);',
          'return hasOtherNode(state, lane, task);',
        ),
      ]),
      removal('attempts per request are bounded', `${FAILING} > gets each request`, [
        edit(ATTEMPTS, 'if (task.attemptsUsed >= config.attemptsMax ||', 'if (task.attemptsUsed >= 99 ||'),
      ]),
      removal(
        'nothing is tried again once a part has reached the client',
        `${FAILING} > never gets a stream`,
        [
          edit(ATTEMPTS, '  if (task.hasFirstByte) return false;\n', ''),
          edit(
            'src/edge/exchange/attempt.ts',
            'const retryable = !this.#owner.hasContent;',
            'const retryable = true;',
          ),
        ],
      ),
      removal('who comes back before its time has no place', 'a queue that was full', [
        edit(RETRY_SHED, "if (standing === 'repeat') return REPEAT_SHARE;", ''),
      ]),
      removal('who comes at its time has a place', 'a queue that is full > has a place', [
        edit(RETRY_SHED, "if (standing === 'invited') return INVITED_SHARE;", ''),
      ]),
      removal('times that are told are places in a line', 'a queue that is full > tells those', [
        edit(
          `${SCHEDULER}/retry-hint.ts`,
          'laneFlow === undefined ? freeUs : nextPlaceUs(laneFlow, freeUs, now)',
          'laneFlow === undefined ? freeUs : Math.min(freeUs, nextPlaceUs(laneFlow, freeUs, now))',
        ),
      ]),
    ],
  },
];
