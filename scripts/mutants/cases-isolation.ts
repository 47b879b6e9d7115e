/** Protections that keep what one model, body or tenant does from the others. */
import { edit, type KnownCase, removal } from './known-case.ts';

const CORE = 'src/core';
const SCHEDULER = `${CORE}/scheduler`;
const BULKHEAD = `${CORE}/placement/bulkhead.ts`;
const SUBMIT = `${SCHEDULER}/submit.ts`;
const ATTEMPTS = `${SCHEDULER}/attempts.ts`;
const MARKS = `${SCHEDULER}/marks.ts`;

const EVERYWHERE = 'a model that is broken on every node';
const POISON = 'a decision while a node has it > for a body that broke two nodes';

export const ISOLATION_CASES: readonly KnownCase[] = [
  {
    name: 'One broken model',
    reports: [],
    symptom:
      'A model that fails takes the nodes that serve others well out of rotation, or every request for it is tried on all of them.',
    promise:
      'It is kept off the nodes where it fails, which go on with the rest; where it fails everywhere it is refused at once with the time left, and one probe brings it back.',
    test: 'breakers.test.ts',
    also: [`${SCHEDULER}/breakers.test.ts`, `${CORE}/health/breaker.test.ts`],
    removals: [
      removal('while its breaker is open a model gets no attempt there', 'a node where nothing but', [
        edit(
          `${CORE}/placement/eligibility.ts`,
          'return node.breakers.get(model)?.breaker.isShut(now) === true;',
          'return node.breakers.get(model)?.breaker.isShut(now) === true && now < 0;',
        ),
      ]),
      removal('failures of one model do not speak against its node', 'a node where nothing but', [
        edit(MARKS, "  if (blame === 'model' && !node.isTrial) return;\n", ''),
        edit(
          `${SCHEDULER}/breakers.ts`,
          '      if (isHeld && node.culprit === here.model) node.failures.acquit();\n',
          '',
        ),
      ]),
      removal('a success ends the breaker', EVERYWHERE, [
        edit(
          MARKS,
          'if (node.breakers !== null || state.modelBreakers.size > 0) modelSucceeded(',
          'if (state.now < 0) modelSucceeded(',
        ),
      ]),
      removal('a model that fails everywhere is refused before an attempt', EVERYWHERE, [
        edit(SUBMIT, "  if (shut !== null) return { kind: 'rejected', reason: 'no-node', ...shut };\n", ''),
      ]),
    ],
  },
  {
    name: 'Body that breaks nodes',
    reports: [],
    symptom: 'A request that crashes its node is tried on the next one, until none is left.',
    promise: 'A body that broke two nodes is tried on no third one, in this submission or another.',
    test: 'case-outcomes-never-500.test.ts',
    also: [`${CORE}/retry/poison.test.ts`, `${SCHEDULER}/attempts.test.ts`],
    removals: [
      removal('the second broken node ends the request', POISON, [
        edit(
          ATTEMPTS,
          'return isMarked || task.brokenNodes >= BROKEN_NODES_MAX;',
          'return isMarked && state.now < 0;',
        ),
      ]),
      removal('the same body is refused at the door', POISON, [
        edit(
          SUBMIT,
          '  if (state.poison.marked > 0 && state.poison.isMarked(spec.fingerprint, state.now)) return POISON;\n',
          '',
        ),
      ]),
    ],
  },
  {
    name: 'One tenant or model fills the nodes',
    reports: [],
    symptom: 'What one of them has started hangs, and holds every slot; even the pages of the gateway wait.',
    promise:
      'In a node group a share is the most that one may hold, or the least that is kept for it; a reserved group takes nobody else. Control endpoints wait in no queue.',
    test: 'bulkheads.test.ts',
    also: [`${CORE}/placement/bulkhead.test.ts`],
    removals: [
      removal('a greatest share closes the group to its holder', 'a group with a greatest share', [
        edit(
          BULKHEAD,
          '    if (ofModel?.isAtMost === true || ofTenant?.isAtMost === true) return false;\n',
          '',
        ),
      ]),
      removal('a least share is kept free', 'a group with a least share', [
        edit(BULKHEAD, 'return this.kept === 0 || this.free > this.kept;', 'return true;'),
      ]),
      removal('a reserved group is for nobody else', 'a reserved group', [
        edit(
          BULKHEAD,
          "return this.#isReservedFor(model, tenant) || !this.#gates.isOn('bulkhead');",
          'return this.#isReservedFor(model, tenant) || this.slots >= 0;',
        ),
      ]),
      removal('the list of models is answered without a look at the queue', 'control endpoints', [
        edit(
          'src/edge/data-plane.ts',
          "    if (route.kind === 'model' && gateway.resolveModel(",
          "    if (gateway.queue().depth > 0) return this.#refusals.refuseUnread(request, refuse('queue-full'), came);\n    if (route.kind === 'model' && gateway.resolveModel(",
        ),
      ]),
    ],
  },
];
