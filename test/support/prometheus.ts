/** A real Prometheus for a test: scrapes one gateway twice a second, evaluates the rules of this repository, answers queries. */
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { stringify } from 'yaml';

const RULES: string = fileURLToPath(new URL('../../deploy/prometheus/alerts.rules.yml', import.meta.url));
const START_MS_MAX = 30_000;

export interface Sample {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

export interface RuleHealth {
  readonly name: string;
  readonly health: string;
  readonly lastError?: string;
}

export interface Prometheus {
  /**
   * An instant vector, of now or of an instant (seconds since 1970); throws with the server's own words when it refuses the
   * expression.
   */
  query(expression: string, atS?: number): Promise<readonly Sample[]>;
  rules(): Promise<readonly RuleHealth[]>;
  close(): Promise<void>;
}

export interface PrometheusOptions {
  readonly path: string;
  /** `host:port` of the gateway. */
  readonly target: string;
  readonly token: string;
}

export async function startPrometheus({ path, target, token }: PrometheusOptions): Promise<Prometheus> {
  const folder = mkdtempSync(join(tmpdir(), 'spillway-prometheus-'));
  const config = {
    global: { scrape_interval: '500ms', evaluation_interval: '1s' },
    rule_files: [RULES],
    scrape_configs: [
      {
        job_name: 'spillway',
        authorization: { credentials: token },
        static_configs: [{ targets: [target] }],
      },
    ],
  };
  const file = join(folder, 'prometheus.yml');
  writeFileSync(file, stringify(config));
  const child = spawn(
    path,
    [
      `--config.file=${file}`,
      `--storage.tsdb.path=${join(folder, 'data')}`,
      '--web.listen-address=127.0.0.1:0',
    ],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  );
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()));
  const close = async (): Promise<void> => {
    child.kill('SIGTERM');
    await ended;
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    const address = await addressOf(child.stderr);
    return { ...clientOf(`http://${address}/api/v1/`), close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Where it listens, as its log says once it is ready. */
function addressOf(log: NodeJS.ReadableStream): Promise<string> {
  let text = '';
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`Prometheus did not start: ${text}`)), START_MS_MAX);
    const settle = (done: () => void): void => {
      clearTimeout(timer);
      done();
    };
    log.setEncoding('utf8');
    log.on('data', (chunk: string) => {
      text += chunk;
      const found = /msg="Listening on" address=(\S+)/.exec(text);
      if (found !== null && text.includes('ready to receive web requests'))
        settle(() => resolve(found[1] as string));
    });
    log.once('close', () => settle(() => reject(new Error(`Prometheus ended: ${text}`))));
  });
}

interface Reply {
  readonly status: string;
  readonly error?: string;
  readonly data: unknown;
}

function clientOf(base: string): Omit<Prometheus, 'close'> {
  const ask = async (path: string): Promise<unknown> => {
    const answer = (await (await fetch(base + path)).json()) as Reply;
    if (answer.status !== 'success') throw new Error(`${decodeURIComponent(path)}: ${answer.error}`);
    return answer.data;
  };
  return {
    async query(expression, atS) {
      const time = atS === undefined ? '' : `&time=${atS}`;
      const data = (await ask(`query?query=${encodeURIComponent(expression)}${time}`)) as {
        readonly result: readonly {
          readonly metric: Readonly<Record<string, string>>;
          readonly value: readonly [number, string];
        }[];
      };
      return data.result.map(({ metric, value }) => ({ labels: metric, value: Number(value[1]) }));
    },
    async rules() {
      const data = (await ask('rules')) as {
        readonly groups: readonly { readonly rules: readonly RuleHealth[] }[];
      };
      return data.groups.flatMap(({ rules }) => rules);
    },
  };
}
