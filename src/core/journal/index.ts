/** The journal of a scheduler: its format, written and read. */
export {
  DECISION,
  DECISION_NAMES,
  type Decision,
  DecisionDigest,
  DecisionSink,
  textWord,
} from './decision.ts';
export { JournalDecoder, type JournalEntry } from './decode.ts';
export { JournalEncoder } from './encode.ts';
export * from './format.ts';
