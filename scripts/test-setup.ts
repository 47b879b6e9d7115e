/**
 * Runs before each test file. Property tests take their seed from `FC_SEED`: CI must name one, so that a red run can be
 * repeated; a developer's run draws a fresh one, and a failing property prints it.
 */
import fc from 'fast-check';
import { propertySeed } from './property-seed.ts';

const seed = propertySeed(process.env);
if (seed !== undefined) fc.configureGlobal({ seed });
