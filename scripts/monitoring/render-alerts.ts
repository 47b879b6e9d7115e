/** Rules, their tests and the guide, as text, from one typed source. */
import { stringify } from 'yaml';
import { ALERT_CASES, type AlertCase, type SeriesOf } from './alert-cases.ts';
import { type Alert, ALERTS, RECORDING_RULES } from './alerts.ts';

const WRITTEN = '# Written by scripts/write-alerts.ts; change scripts/monitoring/ instead.\n';
const RATIOS = 'spillway-ratios';
const MAIN = 'spillway';
const HERE = { job: 'spillway', instance: 'a' };

export function rulesText(): string {
  const alerts = ALERTS.map((alert) => ({
    alert: alert.alert,
    expr: alert.expr,
    for: alert.for,
    labels: { severity: alert.severity },
    annotations: annotationsOf(alert),
  }));
  const groups = [
    { name: RATIOS, rules: RECORDING_RULES },
    { name: MAIN, rules: alerts },
  ];
  return WRITTEN + stringify({ groups }, { lineWidth: 0 });
}

function annotationsOf({ alert, summary, means }: Alert): Readonly<Record<string, string>> {
  return { summary, description: means, runbook: `docs/guides/alerts.md#${alert.toLowerCase()}` };
}

/** Tests by file name: those that are played by the minute, and those that are played more coarsely. */
export function ruleTests(): ReadonlyMap<string, string> {
  const byStep = Map.groupBy(ALERT_CASES, ({ every = 1 }) => every);
  return new Map(
    Array.from(byStep, ([every, cases]) => [testFileOf(every), ruleTestsText(every, cases)] as const),
  );
}

function testFileOf(every: number): string {
  return every === 1 ? 'alerts.test.yml' : `alerts-every-${every}m.test.yml`;
}

function ruleTestsText(every: number, cases: readonly AlertCase[]): string {
  const tests = cases.flatMap((one) => [testOf(one, 'fires'), testOf(one, 'quiet')]);
  const file = {
    rule_files: ['alerts.rules.yml'],
    evaluation_interval: `${every}m`,
    // Without it promtool takes them in any order, and alerts look at ratios of the minute before.
    group_eval_order: [RATIOS, MAIN],
    tests,
  };
  return WRITTEN + stringify(file, { lineWidth: 0 });
}

function testOf(one: AlertCase, state: 'fires' | 'quiet'): unknown {
  const alert = ALERTS.find((row) => row.alert === one.alert);
  if (alert === undefined) throw new Error(`A case of an alert that does not exist: ${one.alert}`);
  const fired = {
    exp_labels: { severity: alert.severity, ...one.labels },
    exp_annotations: filledIn(annotationsOf(alert), one.labels),
  };
  return {
    name: `${one.alert} ${state === 'fires' ? 'fires' : 'does not fire'}`,
    interval: `${one.every ?? 1}m`,
    input_series: seriesOf(one[state]),
    alert_rule_test: [
      { eval_time: `${one.at}m`, alertname: one.alert, exp_alerts: state === 'fires' ? [fired] : [] },
    ],
  };
}

function seriesOf(series: SeriesOf): unknown {
  return Object.entries(series).map(([selector, values]) => ({ series: withTarget(selector), values }));
}

/** With the labels that Prometheus adds to all that it scrapes. */
function withTarget(selector: string): string {
  const added = Object.entries(HERE).map(([label, value]) => `${label}="${value}"`);
  const [name = '', labels = ''] = selector.replace('}', '').split('{');
  return `${name}{${[...(labels === '' ? [] : [labels]), ...added].join(',')}}`;
}

function filledIn(
  annotations: Readonly<Record<string, string>>,
  labels: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  const fill = (text: string): string =>
    text.replaceAll(/\{\{ \$labels\.(\w+) \}\}/g, (_, label: string) => labels[label] ?? '');
  return Object.fromEntries(Object.entries(annotations).map(([key, text]) => [key, fill(text)]));
}

export function guideText(): string {
  const rows = ALERTS.map(
    ({ alert, severity, summary }) =>
      `| [\`${alert}\`](#${alert.toLowerCase()}) | ${severity} | ${plain(summary)} |`,
  );
  return `${GUIDE_HEAD}${rows.join('\n')}\n\n${ALERTS.map(runbookOf).join('\n')}`;
}

function runbookOf({ alert, expr, severity, summary, means, look, act, ...rest }: Alert): string {
  return `## ${alert}

${plain(summary)} (${severity}, after ${rest.for}).

- **Means**: ${means}
- **Look**: ${look}
- **Do**: ${act}

\`\`\`promql
${expr}
\`\`\`
`;
}

function plain(summary: string): string {
  return summary.replaceAll(/\{\{ \$labels\.(\w+) \}\}/g, (_, label: string) => `*${label}*`);
}

const GUIDE_HEAD = `# Alerts and dashboard

Rules for Prometheus and a dashboard for Grafana, written from the same typed source as the [metrics](../reference/metrics.md): a rule or
panel that names a metric or a label which the gateway does not export fails the build.

\`\`\`yml
# prometheus.yml
rule_files: [spillway/alerts.rules.yml]   # deploy/prometheus/alerts.rules.yml
scrape_configs:
  - job_name: spillway
    authorization: { credentials_file: /var/lib/spillway/metrics-token }
    static_configs: [{ targets: ["gateway:8480"] }]
\`\`\`

\`severity\` is \`page\` (somebody is awake for it) or \`ticket\` (in the morning). Each rule fires and stays quiet under the series of
\`deploy/prometheus/alerts.test.yml\`; \`promtool test rules deploy/prometheus/*.test.yml\` plays them. Change
\`scripts/monitoring/\` and run \`node scripts/write-alerts.ts\`.

The first class is promised 99 % of what it asks for, the others 90 %; who wants other numbers changes \`FIRST_BUDGET\` and
\`OTHER_BUDGET\` there. Limits of a tenant, wrong requests and clients that leave do not spend the budget.

## Dashboard

\`deploy/grafana/spillway.json\`: import it in Grafana (Dashboards, New, Import) and choose the Prometheus that scrapes the
gateway. Its rows go from what users meet to what causes it: how requests end, waits, overload, the scheduler's books on itself
([ledgers](../concepts/ledgers.md)), nodes, the process. It is written by \`node scripts/write-dashboard.ts\`.

## All alerts

| alert | severity | what |
| --- | --- | --- |
`;
