/**
 * A user as clients keep it: what it wishes, drawn at its arrival, and where it is with its tries. Records are used again:
 * whoever draws a user for one sets all that the arrival does not.
 */
import { HeapSlot } from '../../base/keyed-heap.ts';
import type {
  ClassName,
  DurationUs,
  ModelId,
  MonoUs,
  Ratio,
  RefUs,
  TaskId,
  TenantId,
} from '../../base/units.ts';
import type { TaskStage } from '../../core/request/task.ts';
import type { Demand } from '../machines/machine.ts';
import type { Size } from './sizes.ts';
import type { Source } from './source.ts';
import type { User } from './user.ts';

const NO_DEMAND: Demand = Object.freeze({ kind: 'work', workUs: 1 });
const NO_SIZE: Size = Object.freeze({
  demand: NO_DEMAND,
  workUs: 1,
  firstByteShare: 1,
  deadlineUsMin: 0,
  bytes: 0,
  promptTokens: 0,
  tokens: 0,
  prefix: undefined,
});

export class UserRecord implements User {
  index = 0;
  stream = 0;
  className: ClassName = '';
  classAt = 0;
  tenant: TenantId = '';
  tenantAt = 0;
  model: ModelId = '';
  /** Position of its model in the stream. */
  modelAt = 0;
  /** What its client tells of the workflow. */
  stage: TaskStage | undefined = undefined;
  demand: Demand = NO_DEMAND;
  size: Size = NO_SIZE;
  workUs: RefUs = 1;
  /** What policies believe of the work. */
  estimateUs: RefUs = 1;
  /** Factor on the service time. */
  noise = 1;
  deadlineUs: DurationUs = 0;
  arrivedAt: MonoUs = 0;
  source: Source;
  /** Its number within the stream, which all that is drawn for it starts from. */
  draw = 0;
  isPatient = false;
  tries = 0;
  taskId: TaskId = 0;
  firstByteAt: MonoUs = -1;
  /** Whether a try is under way. If not, it waits to try again. */
  isOut = false;
  hasEnded = false;
  /** Tries whose request somebody may still look at. */
  openTries = 0;
  /** Place among timers: hanging up while a try is under way, else coming back. Made when first needed. */
  timer: HeapSlot<UserRecord> | undefined = undefined;

  constructor(source: Source) {
    this.source = source;
  }

  /** Becomes the user who is due at the source now, before it is drawn. */
  begin(source: Source, index: number): void {
    this.source = source;
    this.index = index;
    this.tries = 0;
    this.taskId = 0;
    this.firstByteAt = -1;
    this.isOut = false;
    this.hasEnded = false;
    this.openTries = 0;
  }

  timerSlot(): HeapSlot<UserRecord> {
    this.timer ??= new HeapSlot<UserRecord>(this, this.index);
    this.timer.order = this.index;
    return this.timer;
  }

  firstByteEstimateUs(): RefUs {
    const share: Ratio = this.size.firstByteShare;
    return share === 1 ? this.estimateUs : Math.max(1, Math.round(this.estimateUs * share));
  }
}
