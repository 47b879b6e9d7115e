/** Lesser answers by consent: what they are and which ends they may replace. */
export * from './alternative.ts';
