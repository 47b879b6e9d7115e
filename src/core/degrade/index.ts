/** Lesser answers by consent: what they are, which a request may get, and which ends they may replace. */
export * from './alternative.ts';
export * from './plan.ts';
