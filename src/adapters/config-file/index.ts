/** Configuration from files. The watcher is a module of its own: a start does not wait for it. */
export { sha256Hex } from './digest.ts';
export {
  createKey,
  type KeyCreated,
  type KeyRequest,
  type KeyRevoked,
  KEYS_MAX,
  readKeysFile,
  revokeKey,
  type StoredKey,
} from './keys-file.ts';
export { issueText, type LocatedIssue } from './locate.ts';
export { type ReadConfig, type ReadConfigOptions, readConfig } from './read-config.ts';
