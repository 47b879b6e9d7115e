/** Writes the dashboard for Grafana. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dashboard } from './monitoring/render-dashboard.ts';

const folder = new URL('../deploy/grafana/', import.meta.url);
mkdirSync(folder, { recursive: true });
writeFileSync(new URL('spillway.json', folder), `${JSON.stringify(dashboard(), null, 2)}\n`);
