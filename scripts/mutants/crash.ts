/** Protections of what a crash of the gateway must not forget. */
import type { Removal } from './known-case.ts';

const SCHEDULER = 'src/core/scheduler';
const FLEET = 'src/runtime/fleet';

export const CRASH_REMOVALS: readonly Removal[] = [
  {
    what: 'a failure is written down before it has led to anything',
    edits: [
      {
        file: `${FLEET}/roster.ts`,
        original: "      else if (end === 'failed') node.saveDue = true;\n",
        mutated: '',
      },
    ],
    titles: 'a gateway that is killed without warning > knows two failures',
  },
  {
    what: 'breakers of models come back with the node after a crash',
    edits: [
      {
        file: `${SCHEDULER}/node-events.ts`,
        original: 'memory.breakers ?? []',
        mutated: '[]',
      },
    ],
    titles: 'a gateway that is killed without warning > knows the model',
  },
];
