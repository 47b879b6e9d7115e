/**
 * Which class a request gets. A wish may come from our own header or from a hint of another system; every wish is
 * clamped to the tenant's ceiling in the same way, so no spelling of it is a way around the limit. The first readable
 * wish in the order below counts; an unreadable one is reported, and ignored.
 */
import type { ClassName } from '../../base/units.ts';
import type { IgnoredWish } from '../../ports/metrics-sink.ts';
import type { Tenant } from './keys.ts';

export interface ClassWishes {
  /** `x-spillway-class`. */
  readonly header: string;
  /** OpenAI `service_tier` in the body; undefined when absent. */
  readonly serviceTier: unknown;
  /** vLLM and LiteLLM `priority` in the body, lower first; undefined when absent. */
  readonly bodyPriority: unknown;
  /** `x-llm-d-inference-objective`. */
  readonly objective: string;
  /** RFC 9218 `Priority`. */
  readonly priority: string;
}

/** Position of the class that the request gets; 0 is the most important. */
export function decideClass(
  wishes: ClassWishes,
  tenant: Tenant,
  classNames: readonly ClassName[],
  ignored: (wish: IgnoredWish) => void,
): number {
  const wished =
    byName(wishes.header, classNames, ignored) ??
    byTier(wishes.serviceTier, classNames, ignored) ??
    byBodyPriority(wishes.bodyPriority, classNames, ignored) ??
    byName(wishes.objective, classNames, ignored) ??
    byUrgency(wishes.priority, classNames, ignored) ??
    tenant.defaultClass;
  return Math.max(wished, tenant.ceiling);
}

function byName(
  name: string,
  classNames: readonly ClassName[],
  ignored: (wish: IgnoredWish) => void,
): number | undefined {
  if (name === '') return undefined;
  const index = classNames.indexOf(name);
  if (index >= 0) return index;
  ignored('class-unknown');
  return undefined;
}

function byTier(
  tier: unknown,
  classNames: readonly ClassName[],
  ignored: (wish: IgnoredWish) => void,
): number | undefined {
  if (tier === undefined || tier === null || tier === 'auto' || tier === 'default') return undefined;
  if (tier === 'priority') return 0;
  if (tier === 'flex') return classNames.length - 1;
  ignored('class-unknown');
  return undefined;
}

/** Engines read any integer here, 0 being the default: below is more important, above less. */
function byBodyPriority(
  priority: unknown,
  classNames: readonly ClassName[],
  ignored: (wish: IgnoredWish) => void,
): number | undefined {
  if (priority === undefined || priority === null || priority === 0) return undefined;
  if (typeof priority === 'number' && Number.isFinite(priority))
    return priority < 0 ? 0 : classNames.length - 1;
  ignored('priority-hint-unreadable');
  return undefined;
}

/** Urgency 0 to 7, 3 being the default, spread evenly over the classes. */
function byUrgency(
  priority: string,
  classNames: readonly ClassName[],
  ignored: (wish: IgnoredWish) => void,
): number | undefined {
  if (priority === '') return undefined;
  const match = /(?:^|[,\s])u=(\d)(?:$|[,;\s])/.exec(priority);
  if (match === null) return undefined;
  const urgency = Number(match[1]);
  if (urgency > 7) {
    ignored('priority-hint-unreadable');
    return undefined;
  }
  return urgency === 3 ? undefined : Math.floor((urgency * classNames.length) / 8);
}
