/** Numbers of the journal: how large its files may become. */
import { GIB, MIB, type Setting, whole } from './setting.ts';

export type JournalSetting = `journal.${'segmentBytesMax' | 'bytesMax'}`;

export const JOURNAL: Readonly<Record<JournalSetting, Setting>> = {
  'journal.segmentBytesMax': whole(
    64 * MIB,
    'bytes',
    [MIB, 64 * GIB],
    [
      'Size at which a segment ends and the next one begins; the oldest are removed as a whole.',
      'own choice: about a hundred thousand requests',
    ],
  ),
  'journal.bytesMax': whole(
    GIB,
    'bytes',
    [MIB, 1024 * GIB],
    [
      'All segments in the folder; beyond it the oldest go, and a replay of what is left is no longer exact.',
      'own choice: about ten million requests',
    ],
  ),
};
