import { describe, expect, it } from 'vitest';
import { NO_NEEDS } from '../core/request/index.ts';
import { saneTask } from '../core/scheduler/sane.ts';
import type { SubmitSpec } from './contract.ts';
import { SubmittedTask } from './submitted-task.ts';

class Lazy implements SubmitSpec {
  readonly className = 'normal';
  readonly tenant = 'acme';
  readonly model = 'm';
  readonly needs = NO_NEEDS;
  readonly workUs: number;
  readonly firstByteWorkUs = 1_000;
  readonly bytes = 10;
  readonly deadlineUs = 5_000;
  readonly deadlineWished = true;
  readonly stream = false;
  readonly receivedAt = 1_000;
  asked = 0;

  constructor(workUs: number) {
    this.workUs = workUs;
  }

  get fingerprint(): string {
    this.asked++;
    return 'f';
  }
}

describe('SubmittedTask', () => {
  it('does not ask for a fingerprint before somebody needs it', () => {
    const spec = new Lazy(1_000);
    const task = saneTask(new SubmittedTask(1, spec, () => {}), 2_000);
    expect(spec.asked).toBe(0);
    expect(task.fingerprint).toBe('f');
    expect(task.deadlineAt).toBe(6_000);
  });

  it('keeps its fingerprint when its numbers are brought into range', () => {
    const task = saneTask(new SubmittedTask(1, new Lazy(Number.NaN), () => {}), 2_000);
    expect(task.workUs).toBeGreaterThan(0);
    expect(task.fingerprint).toBe('f');
  });
});
