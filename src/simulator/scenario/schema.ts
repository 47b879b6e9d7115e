/**
 * The shape of a scenario file. Strict: a key that nobody reads is an issue, since a typing error must not turn into a
 * default. Every key carries its meaning and default, for editors and for the reference page. What no shape can say
 * (names that exist, shares that add up) is checked by `build.ts`.
 */
import { z } from 'zod';
import type { ScenarioFile } from './file-types.ts';
import { duration, rate } from './quantities.ts';

/** Above the largest fleet of one gateway. */
export const GROUP_NODES_MAX = 20_000;
const SEEDS_MAX = 10_000;
/** Entries of a mapping or a list: far above what anybody writes by hand. */
const ENTRIES_MAX = 1_000;

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
const name = (): z.ZodString =>
  z.string().regex(NAME, 'Expected a name: letters, digits, dots, _ and -, at most 64');
const text = (about: string): z.ZodString => z.string().meta({ description: about });

type Range = readonly [min: number, max: number];

/** A bound as a sentence, like every other rule. */
function within(schema: z.ZodNumber, [min, max]: Range): z.ZodNumber {
  const rule = `Expected a number from ${min} to ${max}`;
  return schema.min(min, rule).max(max, rule);
}

function number(about: string, range: Range): z.ZodNumber {
  return within(z.number(), range).meta({ description: about });
}

function whole(about: string, range: Range): z.ZodNumber {
  return within(z.number().int('Expected a whole number'), range).meta({ description: about });
}

function flag(about: string): z.ZodBoolean {
  return z.boolean().meta({ description: about });
}

/** What to say of a mapping of another kind. */
function kindRule(kinds: readonly string[]): { readonly error: string } {
  return { error: `Expected a mapping with kind: ${kinds.join(', ')}` };
}

const PART: Range = [0, 1];
const FACTOR: Range = [0, 1e6];
const SIGMA: Range = [0, 5];
const TOKENS: Range = [1, 1e8];

const engine = z
  .discriminatedUnion(
    'kind',
    [
      z.strictObject({
        kind: z.literal('slots').meta({ description: 'Tasks beside each other do not touch.' }),
        slots: whole('Tasks at once.', [1, 10_000]).prefault(1),
      }),
      z.strictObject({
        kind: z.literal('image-batch').meta({ description: 'Pictures together in one pass.' }),
        batchMax: whole('Most pictures of one pass.', [1, 1_024]).prefault(8),
      }),
      z.strictObject({
        kind: z.literal('text-batch').meta({ description: 'Continuous batching, bounded by cached tokens.' }),
        sequencesMax: whole('Most sequences at once.', [1, 10_000]).prefault(64),
        cacheTokensMax: whole('Tokens that fit into its cache.', TOKENS).prefault(200_000),
        prefixBlocksMax: whole('Blocks of prompts that stay cached after use; 0: none.', [0, 1e8]).prefault(
          0,
        ),
        tokensPerBlock: whole('Tokens of one block.', [1, 65_536]).prefault(512),
      }),
    ],
    kindRule(['slots', 'image-batch', 'text-batch']),
  )
  .meta({ description: 'How a node works on several tasks.' });

const group = z.strictObject({
  count: whole('Nodes of the group.', [1, GROUP_NODES_MAX]).prefault(1),
  hardware: text('Entry of the hardware catalogue (spillway simulate --list), or reference.').prefault(
    'reference',
  ),
  stated: text('What the nodes say they are; default: the truth.').optional(),
  speed: number('True speed relative to the hardware.', [0.001, 1_000]).prefault(1),
  spread: number('Spread (lognormal sigma) of speeds inside the group.', SIGMA).prefault(0),
  engine: engine.prefault({ kind: 'slots' }),
  models: z
    .array(z.string())
    .min(1, 'Expected at least one model')
    .meta({ description: 'Models that the nodes serve; default: every model that is asked for.' })
    .optional(),
  resident: whole('Models that fit into memory at once; 0: all.', [0, 10_000]).prefault(0),
  swap: duration('Time to load another model.').prefault('12s'),
  zone: text('Zone label.').prefault(''),
  rtt: duration('Network, there and back.').prefault(0),
  beat: duration(
    'How often a node is probed or beats; 0: never. The load of a text-batch engine is read each second.',
  ).prefault('10s'),
  heartbeats: flag('Whether the silence of a node makes it suspect.').prefault(false),
  aborts: flag('Whether the engine can stop a task.').prefault(true),
  ratesKnown: flag('Whether policies know the true speeds at the start, or learn them.').prefault(false),
});

const traceParts = z
  .array(
    z.strictObject({
      from: duration('Begin, counted from the first line of the trace.').prefault(0),
      until: duration('End.'),
      repeats: whole('How often the stretch comes.', [1, 100_000]).prefault(1),
    }),
  )
  .max(ENTRIES_MAX)
  .meta({ description: 'Stretches of the trace that follow each other; default: all of it, once.' });

const ARRIVALS = ['poisson', 'gamma', 'weibull', 'closed', 'on-off', 'trace'];

const arrivals = z
  .union(
    [
      z.literal('poisson'),
      z.discriminatedUnion(
        'kind',
        [
          z.strictObject({
            kind: z.literal('poisson').meta({ description: 'Independent of each other.' }),
          }),
          z.strictObject({
            kind: z.literal('gamma').meta({ description: 'Burstier (cv above 1) or steadier than Poisson.' }),
            cv: number('Coefficient of variation of the gaps.', [0.01, 100]),
          }),
          z.strictObject({
            kind: z.literal('weibull').meta({ description: 'Heavy-tailed gaps (shape below 1).' }),
            shape: number('Shape of the gaps.', [0.05, 20]),
          }),
          z.strictObject({
            kind: z
              .literal('closed')
              .meta({ description: 'A fixed number of users: ask, read, think, ask again.' }),
            users: whole('Users.', [1, 1e6]),
            think: duration('Mean time between an answer and the next question.').prefault('10s'),
          }),
          z.strictObject({
            kind: z.literal('on-off').meta({ description: 'Bursts at the rate, then silence.' }),
            on: duration('Length of a burst.'),
            off: duration('Length of the silence.'),
          }),
          z.strictObject({
            kind: z.literal('trace').meta({ description: 'Instants and sizes from a file.' }),
            format: z.enum(['azure', 'mooncake', 'servegen']).meta({ description: 'Format of the file.' }),
            file: text('The file, relative to the scenario; or --trace on the command line.').optional(),
            times: number('How many times faster than recorded.', [0.001, 1_000]).prefault(1),
            parts: traceParts.prefault([]),
          }),
        ],
        kindRule(ARRIVALS),
      ),
    ],
    { error: `Expected poisson, or a mapping with kind: ${ARRIVALS.join(', ')}` },
  )
  .meta({ description: 'How requests are spread in time.' });

const times = number('Times the rate.', FACTOR);

const course = z
  .array(z.strictObject({ from: duration('From here on.'), times }))
  .max(ENTRIES_MAX)
  .meta({ description: 'Times the rate, piecewise constant from each instant on.' });

const spike = z
  .strictObject({ from: duration('Begin.'), for: duration('Length.'), times })
  .meta({ description: 'A course: at once up, at once back.' });

const staircase = z
  .strictObject({
    from: duration('Begin.').prefault(0),
    for: duration('Time in which the top is reached; default: what is left of the span.').optional(),
    steps: whole('Steps.', [2, ENTRIES_MAX]),
    times: number('Times the rate on the last step; the first is 1.', FACTOR),
    down: flag('Whether the same steps lead down again, in the second half of the time.').prefault(false),
  })
  .meta({ description: 'A course: up in equal steps.' });

const diurnal = z
  .strictObject({
    period: duration('Length of a day.').prefault('24h'),
    low: number('Times the rate when it is lowest.', FACTOR).prefault(0.4),
    high: number('Times the rate when it is highest.', FACTOR).prefault(1.6),
    lowAt: duration('When it is lowest.').prefault('4h'),
  })
  .meta({ description: 'A course: day and night, as a sine in 48 steps.' });

const share = number('Share of the requests; the shares are made to add up to 1.', [0, 1e6]);

const classes = z
  .record(
    z.string(),
    z.union(
      [
        share,
        z.strictObject({
          share,
          deadline: duration('From the first try; default: the deadline of the stream.').optional(),
        }),
      ],
      { error: 'Expected a share, or a mapping with share and deadline' },
    ),
  )
  .meta({ description: 'Shares of the classes; default: the default class alone.' });

const stages = z
  .record(
    z.string(),
    z.strictObject({
      share,
      after: z.string().optional().meta({ description: 'The stage whose answers it works on.' }),
    }),
  )
  .meta({
    description: 'Stages of workflows that clients tell, by name; default: none. They decide nothing.',
  });

const SIZES = ['work', 'fitted-images', 'images', 'text', 'embedding', 'trace'];

const sizes = z
  .union(
    [
      z.literal('fitted-images'),
      z.literal('trace'),
      z.discriminatedUnion(
        'kind',
        [
          z.strictObject({
            kind: z.literal('work').meta({ description: 'Time on the reference machine.' }),
            mean: duration('Mean.').prefault('1s'),
            sigma: number('Spread (lognormal sigma); 0: constant.', SIGMA).prefault(0.5),
          }),
          z.strictObject({
            kind: z
              .literal('fitted-images')
              .meta({ description: 'Images and steps as a production service had them.' }),
            perImageStep: duration(
              'Time of one image and step on the reference machine; 0: what the hardware needs for images.',
            ).prefault(0),
          }),
          z.strictObject({
            kind: z.literal('images').meta({ description: 'Equal pictures.' }),
            units: number('Pictures of 512 x 512 at 30 steps.', [0.001, 10_000]).prefault(1),
          }),
          z.strictObject({
            kind: z.literal('text').meta({ description: 'Prompt and output tokens.' }),
            promptTokensMean: number('Mean of the prompt.', TOKENS).prefault(1_000),
            promptSigma: number('Spread (lognormal sigma) of the prompt.', SIGMA).prefault(1),
            outputTokensMean: number('Mean of the output.', TOKENS).prefault(200),
            outputSigma: number('Spread (lognormal sigma) of the output.', SIGMA).prefault(1),
          }),
          z.strictObject({
            kind: z.literal('embedding').meta({ description: 'Tokens to embed.' }),
            tokensMean: number('Mean.', TOKENS).prefault(500),
            sigma: number('Spread (lognormal sigma).', SIGMA).prefault(0.5),
          }),
          z.strictObject({ kind: z.literal('trace').meta({ description: 'What the trace says.' }) }),
        ],
        kindRule(SIZES),
      ),
    ],
    { error: `Expected fitted-images, trace, or a mapping with kind: ${SIZES.join(', ')}` },
  )
  .meta({ description: 'What a request asks of a node.' });

const tenants = z
  .union(
    [
      z.string(),
      whole('Tenants, all alike.', [1, 1e6]),
      z.strictObject({
        prefix: text('Names are PREFIX-1 and so on.').prefault('tenant'),
        count: whole('Tenants.', [1, 1e6]),
        zipf: number('How uneven their shares are; 0: even.', [0, 5]).prefault(0),
      }),
    ],
    { error: 'Expected a tenant, a number of tenants, or a mapping with prefix, count and zipf' },
  )
  .meta({ description: 'Who asks: one tenant by name, or many.' });

const users = z
  .strictObject({
    tries: whole('Most tries of one wish.', [1, 100]).prefault(3),
    patient: number(
      'Share of users who come back when they are told to; the others after think.',
      PART,
    ).prefault(0.5),
    think: z
      .tuple([duration('At least.'), duration('At most.')])
      .meta({ description: 'How soon the impatient come back.' })
      .prefault(['1s', '5s']),
    hangsUp: flag('Whether clients hang up at their own deadline.').prefault(true),
    tellsCount: flag('Whether retries tell how often they tried, as official clients do.').prefault(true),
  })
  .meta({ description: 'What users do when they get no answer.' });

const stream = z.strictObject({
  rate: rate('Requests per second, minute or hour. Give either rate or load.').optional(),
  load: number('Rate as a share of what the fleet can do of these sizes.', [0.0001, 10_000]).optional(),
  arrivals: arrivals.prefault('poisson'),
  course: course.prefault([]),
  spike: spike.optional(),
  staircase: staircase.optional(),
  diurnal: diurnal.optional(),
  classes: classes.optional(),
  deadline: duration('From the first try; default: that of the class in the configuration.').optional(),
  serviceTimesMin: number(
    'A deadline is never below this many service times of the best node; default: admission.serviceTimesMin of the configuration; 0: whatever it is.',
    [0, 100],
  ).optional(),
  tenants: tenants.prefault('anonymous'),
  models: z
    .union([z.string(), z.record(z.string(), share)], { error: 'Expected a model, or shares by model' })
    .meta({
      description:
        'Which models are asked for; fitted-models: 79 checkpoints as unevenly wanted as those of a production service.',
    })
    .prefault('model'),
  modelSwitch: number(
    'Probability that the next request is for another model than the last; default: each is drawn anew.',
    PART,
  ).optional(),
  stages: stages.optional(),
  sizes: sizes.prefault({ kind: 'work' }),
  noise: z
    .strictObject({
      estimate: number('Spread (lognormal sigma) of estimates around the truth.', SIGMA).prefault(0.5),
      service: number('Spread (lognormal sigma) of service times.', SIGMA).prefault(0.2),
    })
    .meta({ description: 'What policies cannot know.' })
    .prefault({}),
  streamed: flag('Whether answers are streamed; deadlines then bound the first byte.').prefault(false),
  users: users.prefault({}),
});

const FAULTS: readonly string[] = [
  'dead',
  'hang',
  'refuse',
  'partition',
  'stale-readings',
  'slow',
  'gray',
  'restart',
  'mass-reconnect',
  'clock-skew',
  'scheduler-crash',
  'cpu-spike',
];

const fault = z.strictObject({
  at: duration('When it begins.'),
  kind: z.enum(FAULTS).meta({ description: 'What happens.' }),
  nodes: text('Group of the fleet; default: all nodes.').optional(),
  count: whole('So many of them, the first ones; default: all.', [1, GROUP_NODES_MAX]).optional(),
  for: duration('How long; default: to the end. scheduler-crash: how long it is down.').optional(),
  times: number('slow: speed times this.', [0.0001, 1]).optional(),
  failShare: number('gray: share of requests that fail.', PART).optional(),
  skew: duration('clock-skew: by how much the clocks of nodes are ahead.').optional(),
  load: number('cpu-spike: work of others, in times of the CPU there is.', [0, 1_000]).optional(),
});

const processSchema = z
  .strictObject({
    tasksMax: whole('Requests under way at which it dies of lack of memory; 0: never.', [0, 1e9]).prefault(0),
    restart: duration('How long it is down then.').prefault('10s'),
    registry: z
      .enum(['durable', 'heartbeats'])
      .meta({ description: 'Whether nodes are known at once after a restart, or at their next beat.' })
      .prefault('durable'),
    hangUps: z
      .enum(['noticed', 'missed'])
      .meta({
        description:
          'Whether a client that hangs up takes its request with it; missed: it goes on for nobody.',
      })
      .prefault('noticed'),
  })
  .meta({ description: 'The process in which the policy runs.' });

function policy(config: z.ZodType): z.ZodType {
  return z.strictObject({
    name: name().meta({ description: 'How reports call it; default: the policy.' }).optional(),
    policy: text('Policy of the registry; spillway simulate --list tells them.'),
    config: config.optional(),
    options: z
      .record(z.string(), z.union([z.number(), z.string()], { error: 'Expected a number or text' }))
      .meta({ description: 'Options of the policy.' })
      .prefault({}),
    process: processSchema.prefault({}),
  });
}

const bar = z.strictObject({
  about: text('What it stands for.').prefault(''),
  policy: text('Whose figure; default: the first policy.').optional(),
  variant: text('In which variant; default: in each.').optional(),
  metric: text('Path into the report, such as byClass.critical.attained or all.responseMs.p99.'),
  atMost: z.number().meta({ description: 'The mean over seeds is at most this.' }).optional(),
  atLeast: z.number().meta({ description: 'The mean over seeds is at least this.' }).optional(),
  everySeed: flag('Whether it must hold in every seed, and not only in the mean of them.').optional(),
  of: z
    .union(
      [
        z.string(),
        z.strictObject({
          policy: text('Policy; default: the same.').optional(),
          variant: text('Variant; default: the same.').optional(),
          metric: text('Figure; default: the same.').optional(),
        }),
      ],
      { error: 'Expected a policy, or a mapping with policy, variant and metric' },
    )
    .meta({ description: 'The bar is in multiples of the same figure of this policy.' })
    .optional(),
});

/** `config` is the schema of the gateway's own configuration. */
export function createScenarioSchema(config: z.ZodType): z.ZodType<ScenarioFile> {
  return z
    .strictObject({
      $schema: text('For editors; ignored.').optional(),
      name: name().meta({ description: 'Default: the name of the file.' }).optional(),
      about: text('What it shows.').prefault(''),
      span: duration('Users arrive from 0 to here.').prefault('30m'),
      drain: duration(
        'How long those who are left are waited for; default: the longest deadline.',
      ).optional(),
      window: z
        .strictObject({
          from: duration('Arrivals before do not count.').prefault(0),
          until: duration('Arrivals from here on do not count; default: the span.').optional(),
        })
        .meta({ description: 'What counts.' })
        .optional(),
      sample: duration(
        'Period of samples for plots; 0: none, and a three-hundredth of the span with --report.',
      ).prefault(0),
      seed: whole('First seed.', [0, 2 ** 31]).prefault(1),
      seeds: whole('Number of seeds.', [1, SEEDS_MAX]).prefault(1),
      config: config.optional(),
      fleet: z
        .record(
          name(),
          z.union([whole('Reference nodes.', [1, GROUP_NODES_MAX]), group], {
            error: 'Expected a number of nodes, or a mapping',
          }),
        )
        .refine((groups) => Object.keys(groups).length > 0, 'Expected at least one group of nodes')
        .meta({ description: 'Groups of equal nodes, by name.' }),
      streams: z
        .record(name(), stream)
        .refine((streams) => Object.keys(streams).length > 0, 'Expected at least one stream of requests')
        .meta({ description: 'Kinds of traffic, by name; they are independent of each other.' }),
      faults: z.array(fault).max(ENTRIES_MAX).meta({ description: 'What breaks, and when.' }).prefault([]),
      policies: z
        .array(z.union([z.string(), policy(config)], { error: 'Expected a policy, or a mapping' }))
        .min(1, 'Expected at least one policy')
        .max(ENTRIES_MAX)
        .meta({ description: 'Policies that are compared.' })
        .prefault(['spillway', 'round-robin']),
      variants: z
        .record(name(), z.record(z.string(), z.unknown()).nullable())
        .meta({
          description:
            'Scenarios that differ: what each says is merged over the rest of the file, mappings key by key, lists as a whole. With variants, only they are run.',
        })
        .optional(),
      bars: z
        .array(bar)
        .max(ENTRIES_MAX)
        .meta({ description: 'Figures that must hold for simulate to end with 0.' })
        .prefault([]),
    })
    .meta({ title: 'Spillway scenario' }) as unknown as z.ZodType<ScenarioFile>;
}
