/**
 * The configuration file of the demo's gateway. Both policies get the same file but for one word. What a person would
 * write in real time is divided by the speed-up; everything else is the default.
 */
import { stringify } from 'yaml';
import { IMAGE_MODELS, PIXELS_REFERENCE, STEPS_REFERENCE } from '../../emulator/index.ts';
import { type DemoPlan, EMBEDDING_MODEL_ID, IMAGE_MODEL_ID, TURBO_MODEL_ID, TURBO_STEPS } from './plan.ts';

export type DemoPolicy = 'round-robin' | 'spillway';

export interface GatewayConfigOptions {
  readonly plan: DemoPlan;
  readonly policy: DemoPolicy;
  readonly stateFolder: string;
  /** Where the gateway keeps a journal; '' for none. */
  readonly journalFolder: string;
  /** In the order of the plan's nodes. */
  readonly imageNodes: readonly { readonly id: string; readonly url: string; readonly hardware: string }[];
  readonly embeddingUrls: readonly string[];
  /** 0 takes a free one. */
  readonly port: number;
}

/** Steps of a picture at the lower quality: a draft that shows what it will be. */
const DRAFT_STEPS = 8;
/** The default bound of the gate per flow, in emulated time. */
const FLOW_WAIT_MS = 5_000;
const JOURNAL_BYTES_MAX = 64 * 1024 ** 3;
/** Price of an embedding on the machine that runs it, roughly; rates are learned. */
const EMBEDDING_MS = 34;

export function gatewayConfigText(options: GatewayConfigOptions): string {
  const { plan } = options;
  return stringify({
    policy: options.policy,
    seed: plan.seed,
    classes: plan.classes.map((one) => ({
      name: one.name,
      firstByteMs: Math.round(one.deadlineMs),
      completionMs: Math.round(one.deadlineMs),
    })),
    defaultClass: 'normal',
    admission: {
      flowWaitMsMax: Math.round(FLOW_WAIT_MS / plan.speedup),
    },
    models: [
      {
        id: IMAGE_MODEL_ID,
        profile: imageProfile(plan),
        variants: [{ model: TURBO_MODEL_ID }],
        quality: [{ name: 'draft', steps: DRAFT_STEPS }],
      },
      { id: TURBO_MODEL_ID, profile: turboProfile(plan) },
      { id: EMBEDDING_MODEL_ID, profile: { kind: 'embedding', fixedMs: EMBEDDING_MS, msPerToken: 0 } },
    ],
    nodes: [
      ...options.imageNodes.map((node) => ({
        id: node.id,
        url: node.url,
        slots: 1,
        hardware: node.hardware,
        models: modelsOf(plan, node.id).map((model) => ({ model })),
        labels: { emulated: 'yes' },
      })),
      ...options.embeddingUrls.map((url, index) => ({
        id: `embedding-${index + 1}`,
        url,
        slots: 1,
        models: [{ model: EMBEDDING_MODEL_ID }],
      })),
    ],
    server: { host: '127.0.0.1', port: options.port },
    state: { folder: options.stateFolder },
    ...(options.journalFolder === ''
      ? {}
      : // One segment, so that it is one file.
        {
          journal: {
            folder: options.journalFolder,
            segmentBytesMax: JOURNAL_BYTES_MAX,
            bytesMax: JOURNAL_BYTES_MAX,
          },
        }),
  });
}

/** The models that the node serves, as its operator would state them. */
function modelsOf(plan: DemoPlan, nodeId: string): readonly string[] {
  const node = plan.nodes.find((one) => one.id === nodeId);
  return node?.distilled === undefined ? [IMAGE_MODEL_ID] : [IMAGE_MODEL_ID, node.distilled.model];
}

/** It is asked for as many steps as the whole model, and does a few: so each asked step costs that much less. */
function turboProfile(plan: DemoPlan): Record<string, unknown> {
  const whole = imageProfile(plan);
  return {
    ...whole,
    msPerMegapixelStep: (Number(whole['msPerMegapixelStep']) * TURBO_STEPS) / STEPS_REFERENCE,
  };
}

/** The reference accelerator at the plan's speed-up, so that its rate is 1 in wall time. */
function imageProfile(plan: DemoPlan): Record<string, unknown> {
  const model = IMAGE_MODELS.A100;
  return {
    kind: 'image',
    fixedMs: model.fixedMs / plan.speedup,
    msPerMegapixelStep: model.perImageMs / STEPS_REFERENCE / (PIXELS_REFERENCE / 1e6) / plan.speedup,
    stepsDefault: STEPS_REFERENCE,
    pixelsDefault: PIXELS_REFERENCE,
  };
}
