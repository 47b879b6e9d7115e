/** Protections of answers that are given twice, or that are not the whole one. */
import { edit, type KnownCase, removal } from './known-case.ts';

const CORE = 'src/core';
const KEYS = 'src/edge/idempotency';
const CONSENT = 'src/edge/degrade/consent.ts';
const IDENTITY = 'src/edge/cache/identity.ts';

const TAKEN = 'a request whose key is taken';
const OTHERS = 'nobody else gets a lesser answer';
const CONSENTS = 'under overload, a request of a low class that consents';
const SAME = 'an answer that is always the same';

export const ANSWER_CASES: readonly KnownCase[] = [
  {
    name: 'The same request twice',
    reports: [],
    symptom: 'A client that asks again after a lost connection has its work done, and paid for, twice.',
    promise:
      'With an idempotency key there is one run, however often it is asked for; the key is its tenant’s and its body’s, and nothing of a failure is kept.',
    test: 'edge-idempotency.test.ts',
    also: [`${KEYS}/table.test.ts`, `${KEYS}/shared-answer.test.ts`],
    removals: [
      removal('who comes while it runs joins it', `${TAKEN} > joins the one that runs`, [
        edit(
          `${KEYS}/idempotency.ts`,
          '        return this.#join(request, claim.running);\n',
          '        return this.#run(request, name, hash);\n',
        ),
      ]),
      removal('who comes afterwards gets the stored answer', `${TAKEN} > gets the stored answer`, [
        edit(
          `${KEYS}/idempotency.ts`,
          '    this.#table.finish(this.entry, stored, this.#options.now());\n',
          '    this.#table.drop(this.entry);\n    void stored;\n',
        ),
      ]),
      removal('a key is refused to another request', `${TAKEN} > by another body`, [
        edit(
          `${KEYS}/table.ts`,
          "    if (!timingSafeEqual(entry.hash, hash)) return { kind: 'mismatch' };\n",
          '',
        ),
      ]),
      removal('a key belongs to its tenant', `${TAKEN} > by another body`, [
        edit(`${KEYS}/idempotency.ts`, '`${tenant}\\n${key}`', '`${tenant.slice(0, 0)}\\n${key}`'),
      ]),
      removal('failures are not stored', 'what is no answer > a request that the node', [
        edit(
          `${KEYS}/shared-answer.ts`,
          "const isGood = outcome.kind === 'served' || outcome.kind === 'degraded';",
          "const isGood = outcome.kind !== 'cancelled';",
        ),
        edit(`${KEYS}/shared-answer.ts`, '    if (status >= 300) return undefined;\n', ''),
      ]),
      removal('the work goes on while one of them waits', 'a client that leaves > does not end', [
        edit(`${KEYS}/shared-answer.ts`, '    if (this.#seats.size > 0) return;\n', ''),
      ]),
      removal('those who are refused together do not come back together', 'what is no answer > a refusal', [
        edit(`${KEYS}/idempotency.ts`, 'jitterSeed: this.#taskId }', 'jitterSeed: 0 * this.#taskId }'),
      ]),
      removal('only so many wait for one answer', 'at its bounds > only so many', [
        edit(
          `${KEYS}/idempotency.ts`,
          'answer.readers > this.#config.joinersMax',
          'answer.readers > 1e9 * this.#config.joinersMax + 1e9',
        ),
      ]),
    ],
  },
  {
    name: 'Remembered for the wrong one',
    reports: [],
    symptom: 'A cache gives one tenant the answer of another, an old one, or one that is never the same.',
    promise:
      'Remembered are answers that are always the same, under tenant, model with its revision and every parameter, up to their age.',
    test: 'answer-cache.test.ts',
    also: ['src/edge/cache/cache.test.ts'],
    removals: [
      removal('tenants share nothing', 'tenants > that differ', [
        edit(IDENTITY, 'JSON.stringify([sharedBy, model,', 'JSON.stringify([sharedBy.length > 0, model,'),
      ]),
      removal('what calls tools is asked anew', `${SAME} > is asked for again without`, [
        edit(IDENTITY, 'return !usesTools(fields) && ', 'return '),
      ]),
      removal(
        'what has neither seed nor temperature 0 is asked anew',
        `${SAME} > is asked for again without`,
        [edit(IDENTITY, "  if (fields['temperature'] !== 0 && !hasSeed) return false;\n", '')],
      ),
      removal('another revision of the model has other answers', `${SAME} > is asked for again once`, [
        edit(
          IDENTITY,
          'JSON.stringify([sharedBy, model, revision,',
          'JSON.stringify([sharedBy, model, revision.slice(0, 0),',
        ),
      ]),
      removal('answers have an age', `${SAME} > is asked for again once`, [
        edit(
          'src/edge/cache/answer-cache.ts',
          'this.#options.now() - entry.storedAt > this.#options.config().ttlMs * 1_000',
          'this.#options.now() < entry.storedAt',
        ),
      ]),
      removal('failures are not remembered', `${SAME} > is not remembered of a failure`, [
        edit(
          'src/edge/exchange/exchange.ts',
          "if (outcome.kind === 'served' && this.#answer === 'ended') this",
          "if (this.#answer === 'ended') this",
        ),
      ]),
    ],
  },
  {
    name: 'Less than was asked for, unasked',
    reports: [],
    symptom:
      'Under overload everybody is refused although a lesser answer would do; or a client gets one that it never agreed to, and cannot tell.',
    promise:
      'Who consents gets the best lesser answer that can be given, marked as such; nobody else does, and the first class does not.',
    test: 'degrade.test.ts',
    also: [`${CORE}/scheduler/degrade.test.ts`, `${CORE}/degrade/plan.test.ts`],
    removals: [
      removal('a lesser answer stands in for a refusal', `${CONSENTS} > gets a cheaper model`, [
        edit(
          `${CORE}/degrade/alternative.ts`,
          'return REPLACED.has(end.reason);',
          "return end.reason === 'node-failed';",
        ),
      ]),
      removal('a remembered answer goes before one that costs work', `${CONSENTS} > gets an answer`, [
        edit(
          `${CORE}/scheduler/degrade.ts`,
          'for (let index = task.alternative + 1; index < alternatives.length; index += 1) {',
          'for (let index = alternatives.length - 1; index > task.alternative; index -= 1) {',
        ),
      ]),
      removal('consent is asked for', `${OTHERS} > without consent`, [
        edit(
          'src/edge/data-plane.ts',
          "head.degradeWish === '' ? NO_CONSENT : readConsent(",
          "head.degradeWish === '' ? { ...NO_CONSENT, model: true } : readConsent(",
        ),
      ]),
      removal('`none` takes back what stands beside it', `${OTHERS} > with none`, [
        edit(CONSENT, "  if (words.has('none')) return NO_CONSENT;\n", ''),
      ]),
      removal('the first class gets no lesser answer', `${OTHERS} > in the first class`, [
        edit(
          `${CORE}/degrade/plan.ts`,
          '  if (!config.degrade.classes.includes(request.className)) return [];\n',
          '',
        ),
      ]),
      removal('a lesser answer bears its mark', 'the official client > reads a whole lesser answer', [
        edit(
          'src/edge/degrade/flag.ts',
          '  return Buffer.concat([bytes.subarray(0, at + 1), mark, bytes.subarray(at + 1)]);',
          '  return mark.length > 0 ? bytes : mark;',
        ),
      ]),
      removal(
        'a lesser answer stands in where the node failed',
        'a request that was let in > and whose node',
        [
          edit(
            `${CORE}/scheduler/attempts.ts`,
            'if (result.retryable && !task.hasFirstByte) settleOrDegrade(',
            'if (result.retryable && task.hasFirstByte) settleOrDegrade(',
          ),
        ],
      ),
      removal('a model that is switched off is not used', 'a model that is switched off', [
        edit(
          `${CORE}/scheduler/submit.ts`,
          'if (state.modelsOff.size > 0 && state.modelsOff.has(spec.model)) return SWITCHED_OFF;',
          '',
        ),
      ]),
    ],
  },
];
