/**
 * The shape of a configuration file. Strict: a key that nobody reads is an issue, since a typing error must not turn
 * into a default. Types only: ranges and references are the resolver's, so that each problem is reported once; the
 * ranges stand here as annotations, for the JSON Schema that editors read.
 */
import { z } from 'zod';
import { GATE_NAMES, LIMIT_NAMES, SETTINGS, type SettingPath } from '../../core/config/index.ts';

type Shape = Record<string, z.ZodType>;

function setting(path: SettingPath, hasDefault = true): z.ZodOptional<z.ZodNumber> {
  const { value, unit, min, max, integer, reason } = SETTINGS[path];
  const annotation = {
    type: integer ? 'integer' : 'number',
    minimum: min,
    maximum: max,
    description: `${reason} Unit: ${unit}.`,
    ...(hasDefault ? { default: value } : {}),
  };
  return z.number().meta(annotation).optional();
}

/** All numbers of one section, from the table of settings. */
function section(name: string, without: readonly string[] = []): Record<string, z.ZodOptional<z.ZodNumber>> {
  const prefix = `${name}.`;
  const keys = (Object.keys(SETTINGS) as SettingPath[]).filter((path) => path.startsWith(prefix));
  const wanted = keys.filter((path) => !without.includes(path.slice(prefix.length)));
  return Object.fromEntries(wanted.map((path) => [path.slice(prefix.length), setting(path)]));
}

function text(description: string): z.ZodString {
  return z.string().meta({ description });
}

export const SECRET_RULE = 'Expected {env: NAME} or {file: PATH}, never the secret itself';

const secret: z.ZodObject<Shape> = z
  .strictObject(
    {
      env: text('Name of an environment variable that holds the secret.').optional(),
      file: text('Path of a file that holds the secret, relative to this file.').optional(),
    },
    { error: (issue) => (issue.code === 'unrecognized_keys' ? undefined : SECRET_RULE) },
  )
  .meta({
    minProperties: 1,
    maxProperties: 1,
    description: 'Where to read a secret; it never stands in this file.',
  });

function headerValues(description: string): z.ZodType {
  const value = z.union([z.string(), secret], { error: 'Expected text, or {env: NAME} or {file: PATH}' });
  return z.record(z.string(), value).meta({ description });
}

const profile = z
  .discriminatedUnion('kind', [
    z.strictObject({
      kind: z.literal('llm'),
      fixedMs: z.number().nonnegative(),
      prefillMsPerToken: z.number().nonnegative(),
      decodeMsPerToken: z.number().nonnegative(),
    }),
    z.strictObject({
      kind: z.literal('image'),
      fixedMs: z.number().nonnegative(),
      msPerMegapixelStep: z.number().nonnegative(),
      stepsDefault: z.int().positive(),
      pixelsDefault: z.int().positive(),
    }),
    z.strictObject({
      kind: z.literal('embedding'),
      fixedMs: z.number().nonnegative(),
      msPerToken: z.number().nonnegative(),
    }),
    z.strictObject({ kind: z.literal('generic'), meanMs: z.number().positive() }),
  ])
  .meta({
    description: 'Cost on the reference accelerator of the model; a prior, corrected by what is measured.',
  });

const offer: z.ZodObject<Shape> = z.strictObject({
  model: text('Model id that clients ask for.'),
  upstreamModel: text('Name by which the node knows the model, when it differs.').optional(),
  contextTokensMax: z.int().positive().optional(),
  capabilities: z.array(z.enum(['vision', 'tools', 'json-schema', 'audio'])).optional(),
  loras: z.array(z.string()).optional(),
  pixelsMax: z.int().positive().optional(),
  embeddingSize: z.int().positive().optional(),
});

const nodeTls: z.ZodObject<Shape> = z.strictObject({
  ca: text('Path of the certificate authority that signed the certificate of the node.').optional(),
  cert: text('Path of our certificate, for mutual TLS.').optional(),
  key: text('Path of the private key of our certificate.').optional(),
});

const limits = z.strictObject(
  Object.fromEntries(LIMIT_NAMES.map((name) => [name, setting(`tenants[].limits.${name}`, false)])),
);

function limitsOf(whom: string): z.ZodOptional<z.ZodType> {
  return limits.meta({ description: `Limits of ${whom}; what is absent is not limited.` }).optional();
}

export const classSchema: z.ZodObject<Shape> = z.strictObject({
  name: text('Name of the class; the most important class comes first.'),
  weight: setting('classes[].weight', false),
  shareMin: setting('classes[].shareMin', false),
  firstByteMs: setting('classes[].firstByteMs', false),
  completionMs: setting('classes[].completionMs', false),
  limits: limitsOf('all requests of the class together'),
});

export const modelSchema: z.ZodObject<Shape> = z.strictObject({
  id: text('Canonical model id.'),
  aliases: z.array(z.string()).meta({ description: 'Other names that clients use for it.' }).optional(),
  profile: profile.optional(),
  variants: z
    .array(z.strictObject({ model: text('Id of a configured model.') }))
    .meta({ description: 'Cheaper models that may stand in by consent, the first first.' })
    .optional(),
  quality: z
    .array(
      z.strictObject({
        name: text('Name that clients see.'),
        maxTokens: setting('models[].quality[].maxTokens', false),
        maxTokensRatio: setting('models[].quality[].maxTokensRatio', false),
        steps: setting('models[].quality[].steps', false),
        size: text('Largest image, WIDTHxHEIGHT.').optional(),
      }),
    )
    .meta({ description: 'Lower qualities that may stand in by consent, the first first.' })
    .optional(),
  default: z
    .strictObject({
      chat: text('Text of the answer to a chat completion.').optional(),
      completions: text('Text of the answer to a completion.').optional(),
    })
    .meta({ description: 'Answers that stand in by consent when nothing else can.' })
    .optional(),
  off: z.boolean().meta({ description: 'Switched off: nothing is sent to it.', default: false }).optional(),
  revision: text('Which weights it is: answers are not remembered across revisions.').optional(),
  limits: limitsOf('all requests for the model together'),
  imageTokens: setting('models[].imageTokens'),
  optional: z
    .boolean()
    .meta({ description: 'Whether the overload ladder may switch it off.', default: false })
    .optional(),
});

const key: z.ZodObject<Shape> = z
  .strictObject({
    id: text('Name of the key, for people and for revoking it.'),
    sha256: text('SHA-256 of the key, 64 lower-case hexadecimal digits.').optional(),
    env: text('Or: the environment variable that holds the key.').optional(),
    file: text('Or: the file that holds the key.').optional(),
  })
  .meta({ minProperties: 2, maxProperties: 2 });

export const tenantSchema: z.ZodObject<Shape> = z.strictObject({
  id: text('Name of the tenant; a label of metrics and a key of fairness.'),
  weight: setting('tenants[].weight'),
  classCeiling: text('Most important class this tenant may use; default: the first class.').optional(),
  classDefault: text('Class of a request without a wish.').optional(),
  cachePool: text('Tenants that name the same pool share remembered answers.').optional(),
  nodeVisible: z.boolean().meta({ description: 'Whether answers name the node.', default: true }).optional(),
  limits: limitsOf('the tenant; empty: none, whatever tenantLimits says'),
  keys: z.array(key).optional(),
});

export const nodeSchema: z.ZodObject<Shape> = z.strictObject({
  id: text('Stable name; default: host and port of the URL.').optional(),
  url: text('http:// or https://, host, port and base path.'),
  protocol: z.enum(['openai', 'vllm', 'llama.cpp']).meta({ default: 'openai' }).optional(),
  models: z
    .array(z.union([z.string(), offer], { error: 'Expected a model name or a mapping with the key model' }))
    .meta({ description: 'Absent: the node is asked.' })
    .optional(),
  slots: setting('nodes[].slots', false),
  prefixBlocks: setting('nodes[].prefixBlocks', false),
  hardware: text('Hardware class such as T4 or A100: a prior only, rates are measured.').optional(),
  labels: z.record(z.string(), z.string()).meta({ description: 'Free labels; zone is matched.' }).optional(),
  headers: headerValues('Headers added to every request for this node.').optional(),
  key: secret.optional(),
  tls: nodeTls.optional(),
  telemetry: z
    .strictObject({
      url: text('Metrics page of a DCGM exporter, or of a node exporter; without a path /metrics.'),
      gpus: z
        .array(z.string())
        .meta({ description: 'Devices of the node as the page names them; absent: all.' })
        .optional(),
      pressureUrl: text(
        'Another page, of a node exporter or an eBPF exporter, which tells what the host waits for; without a path /metrics.',
      ).optional(),
      reservedUse: setting('nodes[].telemetry.reservedUse', false),
    })
    .meta({ description: 'Where the host tells of its accelerators and of what it lacks.' })
    .optional(),
});

const share: z.ZodObject<Shape> = z.strictObject({
  model: text('Id of the model whose share it is.').optional(),
  tenant: text('Or: id of the tenant whose share it is.').optional(),
  min: setting('groups[].shares[].min'),
  max: setting('groups[].shares[].max'),
});

export const groupSchema: z.ZodObject<Shape> = z.strictObject({
  name: text('Name of the node group.'),
  nodes: z
    .strictObject({
      ids: z.array(z.string()).optional(),
      labels: z.record(z.string(), z.string()).optional(),
    })
    .meta({ description: 'A node is of the first group that names its id or whose labels it all has.' }),
  reservedFor: z
    .strictObject({ models: z.array(z.string()).optional(), tenants: z.array(z.string()).optional() })
    .meta({ description: 'Only these may use the nodes: one of the models and one of the tenants.' })
    .optional(),
  shares: z.array(share).optional(),
});

const server: z.ZodObject<Shape> = z.strictObject({
  host: text('Address to listen on; beyond loopback only with keys.')
    .meta({ default: '127.0.0.1' })
    .optional(),
  ...section('server', ['adminPort', 'overloadStatus']),
  adminPort: setting('server.adminPort', false),
  overloadStatus: z.literal([429, 503]).meta({ default: 429 }).optional(),
  tls: z
    .strictObject({ cert: text('Path of the certificate chain.'), key: text('Path of the private key.') })
    .optional(),
});

const gateMode = z.enum(['on', 'shadow', 'off']).meta({ default: 'on' }).optional();

const gates = z.strictObject(Object.fromEntries(GATE_NAMES.map((gate) => [gate, gateMode]))).meta({
  description: 'Protective gates: on refuses, shadow counts what it would refuse, off does nothing.',
});

export const configSchema: z.ZodObject<Shape> = z
  .strictObject({
    $schema: text('For editors; ignored.').optional(),
    policy: z.enum(['spillway', 'round-robin']).meta({ default: 'spillway' }).optional(),
    seed: setting('seed'),
    classes: z.array(classSchema).optional(),
    defaultClass: text('Class of requests without a wish; default: normal.').optional(),
    bounds: z.strictObject(section('bounds')).optional(),
    admission: z.strictObject(section('admission')).optional(),
    placement: z.strictObject(section('placement')).optional(),
    health: z.strictObject(section('health')).optional(),
    retry: z.strictObject(section('retry')).optional(),
    preemption: z.strictObject(section('preemption')).optional(),
    timeouts: z.strictObject(section('timeouts')).optional(),
    gates: gates.optional(),
    degrade: z
      .strictObject({
        classes: z
          .array(z.string())
          .meta({
            description: 'Classes that may get a lesser answer by consent; default: all but the first.',
          })
          .optional(),
        ...section('degrade'),
      })
      .optional(),
    cache: z
      .strictObject({
        mode: z.enum(['off', 'degrade', 'always']).meta({ default: 'degrade' }).optional(),
        ...section('cache'),
      })
      .optional(),
    tenantLimits: limitsOf('each tenant that has none of its own'),
    ladder: z.strictObject(section('ladder')).optional(),
    models: z.array(modelSchema).optional(),
    tenants: z.array(tenantSchema).optional(),
    nodes: z.array(nodeSchema).optional(),
    groups: z.array(groupSchema).optional(),
    server: server.optional(),
    survival: z.strictObject(section('survival')).optional(),
    idempotency: z.strictObject(section('idempotency')).optional(),
    tracing: z
      .strictObject({
        endpoint: text(
          'URL to which spans are sent by OTLP over HTTP, such as http://collector:4318/v1/traces.',
        ),
        serviceName: text('Name of this gateway among the services of a trace.')
          .meta({ default: 'spillway' })
          .optional(),
        headers: headerValues('Headers added to each export.').optional(),
        ...section('tracing'),
      })
      .meta({ description: 'Traces by OpenTelemetry; absent: none, and nothing of it is loaded.' })
      .optional(),
    rum: z
      .strictObject({
        enabled: z
          .boolean()
          .meta({
            description: 'Whether answers carry x-spillway-beacon and beacons are taken.',
            default: false,
          })
          .optional(),
        originsAllowed: z
          .array(z.string())
          .meta({
            description: 'Origins of the pages that may send beacons, such as https://app.example.com.',
          })
          .optional(),
        ...section('rum'),
      })
      .meta({ description: 'Beacons of browsers: what users saw.' })
      .optional(),
    signals: z.strictObject(section('signals')).optional(),
    journal: z
      .strictObject({
        folder: text('Folder of the journal of everything that happens; empty: none is kept.').optional(),
        ...section('journal'),
      })
      .optional(),
    state: z
      .strictObject({
        folder: text('Folder of the registry, keys and the admin token; empty: memory only.').optional(),
      })
      .optional(),
    keysFile: text('File written by `spillway keys`; default: keys.json in the state folder.').optional(),
  })
  .meta({ title: 'Spillway configuration' });

/** Lists whose entries are parsed one by one, so that a bad entry does not hide problems of the others. */
export const ENTRY_SCHEMAS: Readonly<Record<string, z.ZodObject<Shape>>> = Object.freeze({
  classes: classSchema,
  models: modelSchema,
  tenants: tenantSchema,
  nodes: nodeSchema,
  groups: groupSchema,
});

export function configJsonSchema(): unknown {
  return z.toJSONSchema(configSchema, { io: 'input' });
}
