/**
 * The known failure modes of gateways, the tests over real sockets that rule them out, and for each the protection whose
 * removal the test must notice: exact replacements of source text. If one is no longer found exactly once, the list has
 * to follow the code.
 */
import { ADAPTIVE_CASES } from './cases-adaptive.ts';
import { ANSWER_CASES } from './cases-answers.ts';
import { ISOLATION_CASES } from './cases-isolation.ts';
import { OVERLOAD_CASES } from './cases-overload.ts';
import { CRASH_REMOVALS } from './crash.ts';
import type { KnownCase } from './known-case.ts';

const CORE = 'src/core';
const SCHEDULER = `${CORE}/scheduler`;
const FLEET = 'src/runtime/fleet';

export const CASES: readonly KnownCase[] = [
  {
    name: 'Latched busy mark',
    reports: ['ai-dynamo/dynamo#14213'],
    symptom: 'After a burst the workers stay marked busy, and idle ones refuse for minutes.',
    promise: 'The first request after the load ends is served within 2 s.',
    test: 'case-latched-busy.test.ts',
    removals: [
      {
        what: 'a node that said "full" is closed until work completes there, instead of for a lease',
        edits: [
          {
            file: `${SCHEDULER}/marks.ts`,
            original: 'node.refusedUntil = Math.max(node.refusedUntil, state.now + leaseUs);',
            mutated: 'node.refusedUntil = Math.max(node.refusedUntil, state.now + 1_000 * leaseUs);',
          },
        ],
        titles: 'the first request after a burst is served within two seconds > although every node',
      },
      {
        what: 'load is read only while the node works for us, so that its last word stands',
        edits: [
          {
            file: `${FLEET}/reconciler.ts`,
            original: '(node.inflight > 0 || isPressing(node.loadPage))',
            mutated: '(node.inflight > 0 || (isPressing(node.loadPage) && node.inflight > 0))',
          },
        ],
        titles: 'the first request after a burst is served within two seconds > although the last reading',
      },
    ],
  },
  {
    name: 'Metastable collapse',
    reports: ['Layr-Labs/d-inference#799'],
    symptom: 'Refusing costs more than serving, so that an overload feeds itself and outlasts its cause.',
    promise:
      'At twelve times the capacity goodput stays at 90 % of the peak or more, is usual again within 10 s of the end, and a refusal costs at most half of a served request.',
    test: 'case-metastable.test.ts',
    removals: [
      {
        what: 'the gate per flow at arrival, and the look at the deadline before a task is sent',
        edits: [
          {
            file: `${SCHEDULER}/submit.ts`,
            original: 'if (waitUs <= share * limitUs) return null;',
            mutated: 'if (waitUs <= share * limitUs || state.now >= 0) return null;',
          },
          {
            file: `${SCHEDULER}/in-time.ts`,
            original: 'if (state.now + bestUs * margin <= task.deadlineAt) return true;',
            mutated: 'if (state.now + bestUs * margin <= Number.MAX_VALUE) return true;',
          },
          {
            file: `${SCHEDULER}/in-time.ts`,
            original:
              'return startAt + deadlineServiceUs(node, task, state.context) * marginOf(state) <= task.deadlineAt;',
            mutated:
              'return startAt + deadlineServiceUs(node, task, state.context) * marginOf(state) <= Number.MAX_VALUE;',
          },
        ],
        titles: 'a fleet under twelve times its capacity',
      },
      {
        what: 'a refusal looks at its flow alone; here it scans the fleet 64 times',
        edits: [
          {
            file: `${SCHEDULER}/submit.ts`,
            original: '  state.counts.rejected += 1;\n',
            mutated:
              '  state.counts.rejected += 1;\n  for (let scan = 0; scan < 64; scan++) for (const node of state.fleet.nodes.values()) JSON.stringify(node.rates());\n',
          },
        ],
        titles: 'a refusal > costs the gateway',
      },
    ],
  },
  {
    name: 'Black hole',
    reports: ['Layr-Labs/d-inference#507', 'alibaba/higress#3255'],
    symptom: 'A node that refuses or fails fast looks least loaded and swallows the traffic.',
    promise:
      'It is out of rotation within 10 requests although its health page is green, and errors never improve a score.',
    test: 'case-black-hole.test.ts',
    removals: [
      {
        what: 'ejection by the failure score',
        edits: [
          {
            file: `${SCHEDULER}/marks.ts`,
            original: 'if (isOverLimit || node.isTrial || isUnreachable || blame',
            mutated: 'if (isOverLimit && node.isTrial && isUnreachable && blame',
          },
        ],
        titles: 'a node that answers at once and serves nothing',
      },
      {
        what: 'failed attempts are no observations of speed',
        edits: [
          {
            file: `${SCHEDULER}/attempts.ts`,
            original: '  correct(task, 0);\n  if (result.failure',
            mutated:
              '  node.learn(task.model, task.workUs, 1_000, 1);\n  correct(task, 0);\n  if (result.failure',
          },
        ],
        titles: 'a node that answers at once and serves nothing > gains no speed',
      },
    ],
  },
  {
    name: 'Gray node',
    reports: ['Layr-Labs/d-inference#523'],
    symptom: 'A node that fails 40 % is never tripped, because successes reset the streak.',
    promise: 'It is ejected within 50 requests.',
    test: 'case-gray-node.test.ts',
    removals: [
      {
        what: 'successes lower the failure score a little; here they reset it',
        edits: [
          {
            file: 'src/core/health/failure-score.ts',
            original: '(isSuccess ? SUCCESS_STEP : FAILURE_STEP)',
            mutated: '(isSuccess ? -LIMIT : FAILURE_STEP)',
          },
        ],
        titles: 'a node that fails 40 % of its requests > never two in a row',
      },
    ],
  },
  {
    name: 'Amnesia',
    reports: ['Layr-Labs/d-inference#512'],
    symptom: 'A bad node reconnects and is clean.',
    promise: 'Health is remembered by the node’s stable id, through reconnects and restarts of the gateway.',
    test: 'case-amnesia.test.ts',
    also: ['test/integration/registry-kill.test.ts'],
    removals: [
      {
        what: 'a new statement of a known node keeps its marks',
        edits: [
          {
            file: `${SCHEDULER}/node-events.ts`,
            original: '    known.restate(spec);\n',
            mutated: '    known.restate(spec);\n    known.ejectedUntil = 0;\n    known.failures.reset();\n',
          },
        ],
        titles: 'a node that reconnects after each failure',
      },
      {
        what: 'marks come back with the node after a restart',
        edits: [
          {
            file: `${SCHEDULER}/node-events.ts`,
            original: '  if (memory.ejectedForUs > 0) {\n',
            mutated: '  if (memory.ejectedForUs < 0) {\n',
          },
        ],
        titles: 'a node that was ejected > is still ejected after the gateway was started again',
      },
      ...CRASH_REMOVALS,
    ],
  },
  {
    name: 'Stale readings stop the pool',
    reports: ['llm-d/llm-d-router#2100', 'llm-d/llm-d-router#2547'],
    symptom:
      'When the load pages of every engine freeze or fall silent, a router that trusts them serves nobody.',
    promise: 'Own accounting serves on, and a signal says so.',
    test: 'case-stale-readings.test.ts',
    removals: [
      {
        what: 'a page that repeats the same full load is believed for ever',
        edits: [
          {
            file: `${FLEET}/load-page.ts`,
            original: 'page.isStale = isFull(reading) && now - page.since >= STALE_US;',
            mutated: 'page.isStale = isFull(reading) && now - page.since >= 1_000 * STALE_US;',
          },
        ],
        titles: 'when the load page of every engine > froze',
      },
      {
        what: 'the last reading of a page that went away is believed for ever',
        edits: [
          {
            file: `${FLEET}/load-page.ts`,
            original: 'return page.isStale ? UNKNOWN : undefined;',
            mutated: 'return undefined;',
          },
          {
            file: `${SCHEDULER}/node-events.ts`,
            original: 'const READING_LEASE_US = 5_000_000;',
            mutated: 'const READING_LEASE_US = 5_000_000_000;',
          },
        ],
        titles: 'when the load page of every engine > is gone',
      },
    ],
  },
  {
    name: 'Decisions surface as 500',
    reports: ['llm-d/llm-d-router#2162'],
    symptom: 'A decision of the gateway reaches the client as an internal error.',
    promise: 'Every decision in every phase is a typed answer of the outcome table.',
    test: 'case-outcomes-never-500.test.ts',
    removals: [
      {
        what: 'what ends a request is told to its client by reason; here one reason loses its status',
        edits: [
          {
            file: 'src/edge/outcomes/table.ts',
            original: "  evicted: row(\n    ['overload', OVERLOADED, 'overloaded'],\n",
            mutated: "  evicted: row(\n    [500, OVERLOADED, 'overloaded'],\n",
          },
        ],
        titles: 'a decision while it waits > for a more important one',
      },
    ],
  },
  {
    name: 'Shutdown hangs the queue',
    reports: ['llm-d/llm-d-router#2156'],
    symptom: 'What waits when the process is told to end waits for ever.',
    promise:
      'On SIGTERM: not ready first, what waits is refused within 1 s with a time to come back, what runs finishes up to the drain limit.',
    test: 'case-shutdown.test.ts',
    removals: [
      {
        what: 'the queue is emptied at shutdown',
        edits: [
          {
            file: `${SCHEDULER}/scheduler.ts`,
            original: "if (!task.isRunning) evict(state, task, 'shutting-down')",
            mutated: 'if (task.isRunning) state.isShuttingDown = true',
          },
        ],
        titles: 'SIGTERM > makes the gateway not ready first',
      },
      {
        what: 'readiness ends before anything is refused',
        edits: [
          {
            file: 'src/runtime/gateway.ts',
            original: '  state.ready = false;\n  loop.applyNow(',
            mutated: '  loop.applyNow(',
          },
        ],
        titles: 'SIGTERM > makes the gateway not ready first',
      },
      {
        what: 'what runs beyond the drain limit is cut',
        edits: [
          {
            file: 'src/runtime/gateway.ts',
            original: '  await idle(parts, state.config.server.drainMs);',
            mutated: '  await idle(parts, 1_000 * state.config.server.drainMs);',
          },
        ],
        titles: 'SIGTERM > cuts what runs beyond the drain limit',
      },
    ],
  },
  {
    name: 'Ghost entries',
    reports: ['BerriAI/litellm#20059'],
    symptom: 'Requests whose clients timed out stay queued and are computed for nobody.',
    promise: 'The depth is 0 after the clients left, and no node is called for them.',
    test: 'case-ghost-entries.test.ts',
    removals: [
      {
        what: 'a client that leaves takes its request out of the queue',
        edits: [
          {
            file: `${SCHEDULER}/attempts.ts`,
            original: '  dequeue(state, task);\n  settle(state, task, CANCELLED);\n',
            mutated: '',
          },
        ],
        titles: 'requests that wait > leave the queue with their clients',
      },
    ],
  },
  {
    name: 'Abort not propagated',
    reports: ['BerriAI/litellm#31499', 'ikawrakow/ik_llama.cpp#1929'],
    symptom: 'The client has left, and the node computes on.',
    promise:
      'The node sees the abort within 1 s in every phase; other requests on that node are untouched. Where an engine cannot abort, the client is answered and the slot lingers until the node has really ended.',
    test: 'case-abort.test.ts',
    also: ['test/integration/edge-abort.test.ts', 'test/integration/engine-gateway.test.ts'],
    removals: [
      {
        what: 'a client that leaves ends its request and the attempt that runs for it',
        edits: [
          {
            file: 'src/edge/exchange/exchange.ts',
            original:
              '    if (!this.#isFinished) this.#context.gateway.cancel(this.#taskId);\n    attempt?.stop();\n',
            mutated: '    void attempt;\n',
          },
        ],
        titles: 'a client that leaves',
      },
    ],
  },
  {
    name: 'Leaked permits',
    reports: ['smg-project/smg#2064', 'vllm-project/production-stack#1072'],
    symptom: 'Odd ends of requests keep seats of their node, until the fleet is full of nobody.',
    promise:
      'After 10,000 mixed cancels, errors and timeouts exactly nothing is in flight, and the full capacity is back.',
    test: 'case-leaked-permits.test.ts',
    also: ['test/integration/edge-gateway.test.ts', 'src/core/scheduler/invariants.test.ts'],
    removals: [
      {
        what: 'the permit is given back by the end of the attempt, also when the request has ended before',
        edits: [
          {
            file: `${SCHEDULER}/attempts.ts`,
            original: '  node.release(task, state.now);\n',
            mutated: '  if (!task.isSettled) node.release(task, state.now);\n',
          },
        ],
        titles: 'permits > after 10,000 mixed cancels',
      },
    ],
  },
  {
    name: 'Herd',
    reports: ['vllm-project/aibrix#2422', 'vllm-project/router#177'],
    symptom: 'Pick and count are not one step, so that simultaneous arrivals all run to the same node.',
    promise:
      '200 simultaneous arrivals over nodes of speed 1 : 2 : 4 finish within 15 % of the optimum for their sizes.',
    test: 'case-herd.test.ts',
    removals: [
      {
        what: 'a node is full by what was just sent to it',
        edits: [
          {
            file: 'src/core/health/node-record.ts',
            original: 'this.running.length < this.slotsNow;',
            mutated: 'this.running.length < 1_000 * this.slotsNow;',
          },
        ],
        titles: '200 simultaneous arrivals',
      },
    ],
  },
  {
    name: 'Missed event',
    reports: ['vllm-project/production-stack#1091', 'gpustack/gpustack#6231'],
    symptom: 'A dead node is used for hours, a recovered one never.',
    promise:
      'A periodic look converges both ways within three intervals, by default 30 s, with no event at all.',
    test: 'case-missed-event.test.ts',
    also: ['test/integration/runtime-reconcile.test.ts'],
    removals: [
      {
        what: 'the periodic probe of every node',
        edits: [
          {
            file: `${FLEET}/reconciler.ts`,
            original: "        enqueue(node, 'probe', nothing);\n",
            mutated: '',
          },
        ],
        titles: 'the periodic look',
      },
      {
        what: 'a good probe ends the mark that a bad one set',
        edits: [
          {
            file: `${SCHEDULER}/marks.ts`,
            original: '      node.suspectUntil = 0;\n  } else {\n',
            mutated: '      node.failedProbes = 0;\n  } else {\n',
          },
        ],
        titles: 'the periodic look',
      },
    ],
  },
  {
    name: 'Head of line',
    reports: ['kubernetes-sigs/kueue#8309', 'Haidra-Org/AI-Horde#161'],
    symptom:
      'An impossible task shows a position for ever; a head that waits blocks tasks for other hardware.',
    promise: 'What is impossible is refused at once with the reason; others flow.',
    test: 'case-head-of-line.test.ts',
    also: ['src/core/queue/fairness.test.ts'],
    removals: [
      {
        what: 'a deadline that no node can meet even when idle is refused at arrival',
        edits: [
          {
            file: `${SCHEDULER}/submit.ts`,
            original: '  const isTooSlow = state.now + bestUs > task.deadlineAt;\n',
            mutated: '  const isTooSlow = state.now + bestUs > Number.MAX_VALUE;\n',
          },
        ],
        titles: 'a task that no node can do > that cannot be done by its deadline',
      },
      {
        what: 'tasks for different nodes wait in different lanes',
        edits: [
          {
            file: 'src/core/placement/fleet.ts',
            original: '    if (matching === entry.pools.length) {',
            mutated: '    if (matching > 0) {',
          },
        ],
        titles: 'heads that wait for one node',
      },
    ],
  },
  {
    name: 'Unbounded labels',
    reports: ['llm-d/llm-d-router#2119'],
    symptom:
      'Every name that a client makes up becomes a label set, and the process grows until it is killed.',
    promise: 'However many names come, the metrics page and the memory stay as they are.',
    test: 'case-unbounded-labels.test.ts',
    also: ['src/adapters/metrics-prometheus/prometheus-metrics.test.ts'],
    removals: [
      {
        what: 'only names that somebody configured become labels, and only so many',
        edits: [
          {
            file: 'src/adapters/metrics-prometheus/bounded-names.ts',
            original: 'if (kept.size >= max || !isKnown(name)) return OTHER;',
            mutated: '',
          },
        ],
        titles: 'names that clients make up',
      },
    ],
  },
  {
    name: 'Bad input',
    reports: [],
    symptom:
      'What is malformed is taken, or answered with a stack trace; a broken answer becomes a clean success.',
    promise:
      'A typed refusal in the wire’s own shape, nothing lost, nothing gained; another node is tried, or the client is told.',
    test: 'case-bad-input.test.ts',
    also: [
      'test/integration/edge-bad-input.test.ts',
      'test/integration/edge-bad-node.test.ts',
      'test/integration/cli-commands.test.ts',
    ],
    removals: [
      {
        what: 'deadlines are plain whole numbers within limits',
        edits: [
          {
            file: 'src/edge/deadline.ts',
            original: 'if (!(deadlineMs >= limits.deadlineMsMin && deadlineMs <= limits.deadlineMsMax)) {',
            mutated: 'if (deadlineMs < limits.deadlineMsMin && deadlineMs > limits.deadlineMsMax) {',
          },
        ],
        titles: 'bad input > a deadline of',
      },
      {
        what: 'a whole answer must be whole',
        edits: [
          {
            file: 'src/edge/exchange/attempt.ts',
            original: 'if (!this.#isDeclined && !isJsonEnd(end)) {',
            mutated: 'if (this.#isDeclined && !isJsonEnd(end)) {',
          },
        ],
        titles: 'a bad answer of a node > half a document that looks whole',
      },
      {
        what: 'what was held back may be tried again: its first byte reached nobody',
        edits: [
          {
            file: `${SCHEDULER}/attempts.ts`,
            original: 'if (task.hasFirstByte || !task.isStream) return;',
            mutated: 'if (task.hasFirstByte) return;',
          },
        ],
        titles: 'a bad answer of a node > a short body is tried again',
      },
    ],
  },
  {
    name: 'Limits that do not hold, or never open again',
    reports: ['BerriAI/litellm#18730', 'BerriAI/litellm#39309', 'BerriAI/litellm#27955'],
    symptom:
      'Calls at the same time pass a limit between the look and the count; a refused call is counted; a stream that is cut counts as running for ever.',
    promise:
      'Of a thousand parallel calls never one more than the limit gets through, refused ones take nothing, and what an aborted one had reserved comes back in every phase, once and exactly.',
    test: 'case-limits.test.ts',
    also: [`${CORE}/limits/limits.test.ts`, `${CORE}/limits/token-bucket.test.ts`],
    removals: [
      {
        what: 'tokens are taken when a request is admitted, not when its answer is counted',
        edits: [
          {
            file: `${CORE}/limits/limiter.ts`,
            original:
              '    held?.take(tokens, now);\n    return new Hold(this, this.#requests, held ?? this.#tokens);',
            mutated: '    return new Hold(this, this.#requests, null);',
          },
        ],
        titles: 'a thousand parallel calls > get a limit of 10,000 tokens',
      },
      {
        what: 'a request is taken when it is admitted',
        edits: [
          {
            file: `${CORE}/limits/limiter.ts`,
            original: '    this.#requests?.take(1, now);\n',
            mutated: '    this.#requests?.take(0, now);\n',
          },
        ],
        titles: 'a thousand parallel calls > get a limit of 100 requests, and never one more',
      },
      {
        what: 'the place of a task is given back with its permit',
        edits: [
          {
            file: `${SCHEDULER}/settle.ts`,
            original: '  if (task.reservation !== null) endReservation(state, task);\n',
            mutated: '',
          },
        ],
        titles: 'what comes back > is the place of a stream that was cut',
      },
      {
        what: 'tokens that were not passed on come back; the edge says how many were',
        edits: [
          {
            file: 'src/edge/exchange/attempt.ts',
            original: "    this.#endWith({ kind: 'aborted', ...this.#passed() });\n    this.#call?.abort();",
            mutated: "    this.#endWith({ kind: 'aborted' });\n    this.#call?.abort();",
          },
        ],
        titles: 'what comes back > is the output that was not passed on',
      },
      {
        what: 'a submit that is refused for another reason gives back what it had reserved',
        edits: [
          {
            file: `${SCHEDULER}/submit.ts`,
            original: '    if (task.reservation !== null) endReservation(state, task);\n',
            mutated: '',
          },
        ],
        titles: 'what comes back > is everything, when the same step refuses',
      },
      {
        what: 'the exact time to wait is told, not none',
        edits: [
          {
            file: `${CORE}/limits/limiter.ts`,
            original: '{ retryable: true, afterUs } : NO_RETRY',
            mutated: '{ retryable: true, afterUs: 1 } : NO_RETRY',
          },
        ],
        titles: 'the official client > waits for as long as it is told',
      },
    ],
  },
  ...ADAPTIVE_CASES,
  ...OVERLOAD_CASES,
  ...ISOLATION_CASES,
  ...ANSWER_CASES,
];
