/** A request between its head and its task, as it comes to be known. */
import type { MonoUs } from '../base/units.ts';
import type { DegradeConsent } from '../core/degrade/index.ts';
import type { Tenant } from './auth/keys.ts';
import type { ClientRequest } from './http/client-request.ts';
import type { RequestHead } from './http/head.ts';
import type { InferenceRequest } from './protocols/inference-request.ts';
import type { OpenAiEndpoint } from './protocols/openai/parse.ts';

/** What a request came with, and when. */
export interface Came {
  readonly head: RequestHead;
  readonly receivedAt: MonoUs;
}

/** Somebody who may ask asks for work. */
export interface Arrival extends Came {
  readonly request: ClientRequest;
  readonly tenant: Tenant;
  readonly endpoint: OpenAiEndpoint;
}

/** A request that is understood and may be submitted. */
export interface Understood {
  readonly request: InferenceRequest;
  readonly className: string;
  readonly model: string;
  /** What the client takes instead of the answer that it asked for. */
  readonly consent: DegradeConsent;
}
