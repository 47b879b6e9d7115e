/** What a request asks of an accelerator, apart from who asks and by when. */
import type { RefUs, Tokens } from '../base/units.ts';

export type Demand =
  /** Time on the reference machine, whatever it is that is computed. */
  | { readonly kind: 'work'; readonly workUs: RefUs }
  /** Pictures of 512 x 512 at 30 steps that cost as much. */
  | { readonly kind: 'image'; readonly units: number }
  | {
      readonly kind: 'text';
      readonly promptTokens: Tokens;
      readonly outputTokens: Tokens;
      /** Ids of the prompt's blocks, from its beginning, for engines that remember prefixes. */
      readonly blocks?: readonly number[];
    }
  | { readonly kind: 'embedding'; readonly tokens: Tokens };
