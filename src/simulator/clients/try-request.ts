/**
 * One try of a user as the gateway gets it. Records are used again once nobody looks at the request any more: tasks of a
 * dozen fields were a good part of what a run allocates.
 */
import type { Bytes, ClassName, ModelId, MonoUs, RefUs, TaskId, TenantId, Tokens } from '../../base/units.ts';
import { type Needs, NO_NEEDS } from '../../core/request/index.ts';
import type { TaskPrefix, TaskSpec, TaskStage } from '../../core/request/task.ts';
import type { Demand } from '../machines/machine.ts';
import type { Request } from './clients.ts';
import type { UserRecord } from './user-record.ts';

class TryTask implements TaskSpec {
  id: TaskId = 0;
  className: ClassName = '';
  tenant: TenantId = '';
  model: ModelId = '';
  readonly needs: Needs = NO_NEEDS;
  workUs: RefUs = 1;
  firstByteWorkUs: RefUs = 1;
  bytes: Bytes = 0;
  deadlineAt: MonoUs = 0;
  readonly deadlineWished = true;
  stream = false;
  tokens: Tokens = 0;
  promptTokens: Tokens = 0;
  prefix: TaskPrefix | undefined = undefined;
  stage: TaskStage | undefined = undefined;
  retryCount = 0;
  streamName = '';
  draw = 0;

  /** The same for all tries of a user. Worked out when it is asked for: few are. */
  get fingerprint(): string {
    return `${this.streamName}/${this.draw}`;
  }

  become(user: UserRecord, now: MonoUs): void {
    const { size } = user;
    const { name, isStream, users } = user.source.law.stream;
    this.id = user.taskId;
    this.className = user.className;
    this.tenant = user.tenant;
    this.model = user.model;
    this.workUs = user.estimateUs;
    this.firstByteWorkUs = user.firstByteEstimateUs();
    this.bytes = size.bytes;
    this.deadlineAt = now + user.deadlineUs;
    this.stream = isStream;
    this.tokens = size.tokens;
    this.promptTokens = size.promptTokens;
    this.prefix = size.prefix;
    this.stage = user.stage;
    this.retryCount = users.tellsCount ? user.tries - 1 : 0;
    this.streamName = name;
    this.draw = user.draw;
  }
}

export class TryRequest implements Request {
  readonly task: TryTask = new TryTask();
  user: UserRecord;
  demand: Demand;
  noise = 1;
  readonly #released: (request: TryRequest) => void;

  constructor(user: UserRecord, released: (request: TryRequest) => void) {
    this.user = user;
    this.demand = user.demand;
    this.#released = released;
  }

  /** The user's present try, submitted now. */
  become(user: UserRecord, now: MonoUs): void {
    this.user = user;
    this.demand = user.demand;
    this.noise = user.noise;
    this.task.become(user, now);
  }

  release(): void {
    this.#released(this);
  }
}
