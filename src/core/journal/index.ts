/** The journal of a scheduler: its format, written and read. */
export { type Decision, DecisionDigest, type DecisionKind, DecisionSink } from './decision.ts';
export { JournalDecoder, type JournalEntry } from './decode.ts';
export { JournalEncoder } from './encode.ts';
export * from './format.ts';
