/** Writes the alert rules, their tests and the guide that explains them. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { guideText, rulesText, ruleTests } from './monitoring/render-alerts.ts';

const at = (path: string): URL => new URL(`../${path}`, import.meta.url);

mkdirSync(at('deploy/prometheus/'), { recursive: true });
writeFileSync(at('deploy/prometheus/alerts.rules.yml'), rulesText());
for (const [name, text] of ruleTests()) writeFileSync(at(`deploy/prometheus/${name}`), text);
writeFileSync(at('docs/guides/alerts.md'), guideText());
