/** A journal in files: written by the gateway, read by `spillway replay`. */
export { createJournalFile } from './journal-file.ts';
export { journalFiles, readJournal } from './read-journal.ts';
