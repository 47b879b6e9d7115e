import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { OUTCOMES } from '../../src/edge/outcomes/table.ts';
import { ALERT_CASES } from './alert-cases.ts';
import { ALERTS, BAD_OUTCOMES, RECORDING_RULES } from './alerts.ts';
import { unknownNames } from './names.ts';
import { PANEL_ROWS } from './panels.ts';
import { guideText, rulesText, ruleTests } from './render-alerts.ts';
import { dashboard } from './render-dashboard.ts';

const read = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');
const RECORDED = new Set(RECORDING_RULES.map(({ record }) => record));
const PANEL_QUERIES = PANEL_ROWS.flatMap(({ panels }) => panels.flatMap(({ queries }) => queries));

describe('deploy/', () => {
  test('has the rules, their tests and the guide as they are in code; `node scripts/write-alerts.ts` writes them', () => {
    expect(read('deploy/prometheus/alerts.rules.yml')).toBe(rulesText());
    for (const [name, text] of ruleTests()) expect(read(`deploy/prometheus/${name}`)).toBe(text);
    expect(read('docs/guides/alerts.md')).toBe(guideText());
  });

  test('has the dashboard as it is in code; `node scripts/write-dashboard.ts` writes it', () => {
    expect(JSON.parse(read('deploy/grafana/spillway.json'))).toEqual(dashboard());
  });

  test('names nothing that the gateway does not export', () => {
    const expressions = [...ALERTS, ...RECORDING_RULES, ...PANEL_QUERIES].map(({ expr }) => expr);
    expect(expressions.length).toBeGreaterThan(60);
    expect(expressions.flatMap((expr) => unknownNames(expr, RECORDED))).toEqual([]);
  });
});

describe('unknownNames', () => {
  test.each([
    ['rate(spillway_requests_totals[5m])', ['spillway_requests_totals']],
    ['spillway_queue_depth{tenant="a"}', ['spillway_queue_depth{tenant}']],
    ['sum by (color) (spillway_running)', ['by (color)']],
    ['spillway_request_seconds', ['spillway_request_seconds']],
    ['class:spillway_requests_bad:ratio_rate7m > 1', ['class:spillway_requests_bad:ratio_rate7m']],
    ['spillway_eta_error_ratio_bucket', ['spillway_eta_error_ratio_bucket']],
    ['spillway_eta_error_ratio_count{class="spillway_nothing"}', []],
  ])('finds what is wrong with %s', (expr, wrong) => {
    expect(unknownNames(expr, RECORDED)).toEqual(wrong);
  });
});

describe('alerts', () => {
  test('have a case each, a runbook, and a name of their own', () => {
    const names = ALERTS.map(({ alert }) => alert);
    expect(ALERT_CASES.map(({ alert }) => alert).sort()).toEqual([...names].sort());
    expect(new Set(names).size).toBe(names.length);
    for (const { means, look, act } of ALERTS)
      for (const text of [means, look, act]) expect(text).not.toBe('');
  });

  test('count as bad only ends that a client can meet', () => {
    expect(BAD_OUTCOMES.filter((outcome) => !(outcome in OUTCOMES))).toEqual([]);
  });
});

describe('the dashboard', () => {
  test('has panels that do not overlap, each with an id of its own', () => {
    const { panels } = dashboard();
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
    const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, i) => `${x + (i % w)},${y + Math.floor(i / w)}`),
    );
    expect(new Set(cells).size).toBe(cells.length);
    for (const { gridPos } of panels) expect(gridPos.x + gridPos.w).toBeLessThanOrEqual(24);
  });
});
