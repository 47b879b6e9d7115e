/** Configuration from files. Not everything is here: what a start does not need is loaded from its own module. */
export { sha256Hex } from './digest.ts';
export { issueText } from './issue-text.ts';
export { createKey, readKeysFile, revokeKey } from './keys-file.ts';
export { writePrivateFile } from './private-file.ts';
export { readOverlay } from './read-overlay.ts';
export type { ReadConfig, ReadConfigOptions } from './reading.ts';
export { tlsPairIssue } from './tls-pair.ts';
