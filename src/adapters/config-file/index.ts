/** Configuration from files. Not everything is here: what a start does not need is loaded from its own module. */
export { sha256Hex } from './digest.ts';
export { issueText } from './issue-text.ts';
export { createKey, readKeysFile, revokeKey } from './keys-file.ts';
export { type LayOver, locatedInOverlay, type Overlaid, overlayOrigins } from './overlaid.ts';
export {
  openOverlayStore,
  type OverlayState,
  type OverlayStore,
} from './overlay-store.ts';
export { writePrivateFile } from './private-file.ts';
export { readCommandLine } from './read-command-line.ts';
export type { ReadConfig, ReadConfigOptions } from './reading.ts';
export { tlsPairIssue } from './tls-pair.ts';
