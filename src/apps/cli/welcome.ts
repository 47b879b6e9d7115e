/** What `serve` says when it listens: where, what it found, and a line to try. */
import { LOCAL_CANDIDATES } from '../../adapters/engines/index.ts';
import type { StartedGateway } from '../gateway/start-gateway.ts';

export interface WelcomeFacts {
  readonly started: StartedGateway;
  /** Path of the admin token, or '' when it is only in memory. */
  readonly adminTokenFile: string;
  /** One line for each engine found on this machine; undefined when nobody looked. */
  readonly found: readonly string[] | undefined;
}

export function welcome(facts: WelcomeFacts): string {
  const { started, adminTokenFile, found } = facts;
  const { gateway, dataUrl, adminUrl } = started;
  const lines = [`Spillway listens on ${dataUrl}`];
  if (adminUrl !== dataUrl) lines.push(`Admin plane on ${adminUrl}`);
  lines.push(`Console on ${adminUrl}/console`);
  if (adminTokenFile !== '')
    lines.push(
      `Admin token in ${adminTokenFile} (mode 0600); spillway nodes|queue|explain find it by themselves`,
    );
  if (found !== undefined && found.length > 0)
    lines.push('', 'Found on this machine:', ...found.map((line) => `  ${line}`));
  const models = gateway.models();
  const nodes = gateway.nodes().length;
  if (nodes === 0) return [...lines, '', ...nothingToServe(found)].join('\n');
  lines.push(
    '',
    `${count(nodes, 'node')}, ${count(models.length, 'model')}${models.length === 0 ? '' : `: ${listed(models)}`}`,
  );
  if (models.length === 0)
    lines.push('', 'No node has named a model yet. See what they answer with: spillway nodes');
  else lines.push('', 'Try:', ...curl(started, models[0] ?? ''));
  return lines.join('\n');
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`;
}

const LISTED_MAX = 5;

function listed(models: readonly string[]): string {
  const more = models.length - LISTED_MAX;
  return models.slice(0, LISTED_MAX).join(', ') + (more > 0 ? ` and ${more} more` : '');
}

function nothingToServe(found: readonly string[] | undefined): string[] {
  return [
    ...lookedFor(found),
    'Do one of these:',
    '  start an engine, for example: ollama serve, then: ollama pull llama3.2; start spillway again',
    '  name one:                     spillway serve --node http://gpu-host:8000',
    '  write a configuration:        spillway serve --config spillway.yaml (see examples/)',
    '  see it without a GPU:         spillway demo (emulated accelerators)',
  ];
}

function lookedFor(found: readonly string[] | undefined): string[] {
  if (found === undefined) return ['There is no node yet.'];
  if (found.length > 0) return ['None of them can be used by this version, so there is no node yet.'];
  const places = LOCAL_CANDIDATES.map(({ url, names }) => `${new URL(url).port} (${names})`);
  return [
    'There is no node yet: no engine answers on this machine. Looked at the ports',
    `  ${places.join(', ')}`,
  ];
}

type Endpoint = 'chat' | 'embeddings' | 'images';

/** By the configured profile, else by how such models are usually named. */
function endpointOf(started: StartedGateway, model: string): Endpoint {
  const profile = started.gateway.config.scheduler.models.find((entry) => entry.id === model)?.profile.kind;
  if (profile === 'image') return 'images';
  if (profile === 'embedding') return 'embeddings';
  if (profile === undefined && /embed|minilm|bge|(^|[/-])(e5|gte)([-:]|$)/i.test(model)) return 'embeddings';
  return 'chat';
}

/** A line that works as it stands; with keys it takes one from the environment. */
function curl(started: StartedGateway, model: string): string[] {
  const { config } = started.gateway;
  const paths = {
    chat: '/v1/chat/completions',
    embeddings: '/v1/embeddings',
    images: '/v1/images/generations',
  };
  const bodies = {
    chat: { model, messages: [{ role: 'user', content: 'Say hello' }] },
    embeddings: { model, input: 'hello' },
    images: { model, prompt: 'a lighthouse' },
  };
  const endpoint = endpointOf(started, model);
  const hasKeys = config.tenants.some((tenant) => tenant.keys.length > 0);
  const tls = config.server.tls === undefined ? '' : ` --cacert ${shellQuoted(config.server.tls.cert)}`;
  return [
    `  curl${tls} ${started.dataUrl}${paths[endpoint]} -H 'content-type: application/json' \\`,
    ...(hasKeys ? ['    -H "authorization: Bearer $SPILLWAY_KEY" \\'] : []),
    `    -d ${shellQuoted(JSON.stringify(bodies[endpoint]))}`,
  ];
}

function shellQuoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
