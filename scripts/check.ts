/** `npm run check`: types, format, lint, dead code, copies, import direction, names. Runs all, then tells all. */
import { fileURLToPath } from 'node:url';
import { judge, STEPS } from './checks/steps.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url)).replace(/\/$/, '');
const wanted = process.argv.slice(2);
const steps = STEPS.filter((step) => wanted.length === 0 || wanted.includes(step.name));
if (steps.length === 0) {
  process.stderr.write(`No such check; there are: ${STEPS.map((step) => step.name).join(', ')}\n`);
  process.exit(2);
}

let failed = 0;
for (const step of steps) {
  const startedAt = performance.now();
  const run = step.run(ROOT);
  const verdict = judge(run);
  if (!verdict.ok) {
    failed += 1;
    process.stdout.write(`\n${run.output.trim()}\n\n`);
  }
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
  process.stdout.write(`${verdict.ok ? 'ok    ' : 'FAILED'} ${step.name}: ${verdict.reason}, ${seconds} s\n`);
}
process.stdout.write(`${steps.length - failed} checks passed, ${failed} failed\n`);
process.exitCode = failed === 0 ? 0 : 1;
