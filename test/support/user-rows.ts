/** What became of users, made by hand, for comparisons. */
import type { User } from '../../src/simulator/clients/user.ts';
import type { Ending } from '../../src/simulator/measure/group.ts';
import { TimedValue } from '../../src/simulator/measure/log-histogram.ts';
import { UserLog, USERS_LOGGED_MAX, type UserRows } from '../../src/simulator/measure/user-log.ts';
import { FleetTimes } from '../../src/simulator/oracle/fleet-times.ts';
import { S } from './specs.ts';

export interface UserFate {
  readonly kind: Ending['kind'];
  readonly inTime?: boolean;
  readonly seconds: number;
  readonly node?: number;
  readonly className?: string;
  readonly draw?: number;
  readonly tenant?: string;
}

export const served = (seconds: number, more: Partial<UserFate> = {}): UserFate => ({
  kind: 'served',
  inTime: true,
  seconds,
  node: 0,
  ...more,
});

export function loggedUser(
  index: number,
  { className = 'critical', draw = index, tenant = 't' }: Partial<UserFate>,
): User {
  return {
    index,
    stream: 0,
    draw,
    className,
    classAt: 0,
    tenant,
    tenantAt: 0,
    model: 'm',
    demand: { kind: 'work', workUs: S },
    workUs: S,
    noise: 1,
    deadlineUs: 10 * S,
    arrivedAt: index * S,
    tries: 1,
    taskId: index,
    firstByteAt: -1,
  };
}

/** Users 0, 1, 2 … who come a second after each other. */
export function userRows(fates: readonly UserFate[], usersMax: number = USERS_LOGGED_MAX): UserRows {
  const log = new UserLog({
    usersMax,
    classes: ['critical', 'low'],
    streams: ['chat'],
    nodes: ['n-1', 'n-2'],
    times: new FleetTimes([], { groups: [], streams: [], probe: undefined }),
  });
  for (const [index, fate] of fates.entries()) {
    const user = loggedUser(index, fate);
    log.arrived(user);
    log.ended(user, endingOf(fate), { node: fate.node ?? -1, afterUs: fate.seconds * S });
  }
  return log.rows(1_000 * S);
}

function endingOf({ kind, inTime = false, seconds }: UserFate): Ending {
  const [wait, response, firstByte] = [new TimedValue(), new TimedValue(), new TimedValue()];
  wait.set((seconds * S) / 2);
  response.set(seconds * S);
  firstByte.set(-1);
  return { kind, inTime, inTimeOfTry: inTime, wait, response, firstByte, workUs: S };
}
