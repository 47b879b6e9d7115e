/**
 * Why a node may not take a task. The same rules as the index applies, spelled out for people: the hot path decides
 * needs once per pool and marks once per change, `explain` asks for every node.
 */
import type { MonoUs } from '../../base/units.ts';
import type { SchedulerConfig } from '../config/types.ts';
import type { NodeRecord } from '../health/node-record.ts';
import type { TaskRecord } from '../queue/task-record.ts';
import { type ModelOffer, type Needs, NO_NEEDS } from '../request/needs.ts';
import type { IneligibleReason } from '../scheduler/views.ts';

/** What of the needs the offer lacks, or null. Unknown limits never refuse. O(capabilities). */
export function missingNeed(offer: ModelOffer, zone: string, needs: Needs): IneligibleReason | null {
  if (needs.contextTokens > 0 && needs.contextTokens > (offer.contextTokensMax ?? Number.POSITIVE_INFINITY)) {
    return 'context-too-long';
  }
  if (needs.pixels > 0 && needs.pixels > (offer.pixelsMax ?? Number.POSITIVE_INFINITY))
    return 'pixels-too-many';
  if (
    needs.embeddingSize > 0 &&
    offer.embeddingSize !== undefined &&
    needs.embeddingSize !== offer.embeddingSize
  ) {
    return 'embedding-size';
  }
  if (needs.lora !== '' && offer.loras !== undefined && !offer.loras.includes(needs.lora))
    return 'lora-missing';
  if (offer.capabilities !== undefined) {
    for (const capability of needs.capabilities) {
      if (!offer.capabilities.includes(capability)) return 'capability-missing';
    }
  }
  return needs.zone !== '' && needs.zone !== zone ? 'zone' : null;
}

/** Whether any node that offers the model meets the needs. */
export function asksNothing(needs: Needs): boolean {
  if (needs === NO_NEEDS) return true;
  const { contextTokens, capabilities, lora, pixels, embeddingSize, zone } = needs;
  return (
    contextTokens <= 0 &&
    pixels <= 0 &&
    embeddingSize <= 0 &&
    capabilities.length === 0 &&
    lora === '' &&
    zone === ''
  );
}

/** Whether a breaker keeps the model off the node. One field test while nothing failed there. */
export function isShutFor(
  node: NodeRecord,
  model: string,
  { config, now }: { readonly config: SchedulerConfig; readonly now: MonoUs },
): boolean {
  if (node.breakers === null || config.gates.breaker !== 'on') return false;
  return node.breakers.get(model)?.breaker.isShut(now) === true;
}

/** Every reason why the node may not take the task at this instant; empty when it may. */
export function ineligibleReasons(
  node: NodeRecord,
  task: TaskRecord,
  now: MonoUs,
  config: SchedulerConfig,
): readonly IneligibleReason[] {
  const offer = node.offers.get(task.model);
  if (offer === undefined) return ['model-not-offered'];
  const reasons: IneligibleReason[] = [];
  const need = missingNeed(offer, node.spec.labels['zone'] ?? '', task.spec.needs);
  if (need !== null) reasons.push(need);
  if (node.group !== null && !node.group.mayTake(task)) reasons.push('bulkhead');
  if (node.cordoned) reasons.push('cordoned');
  if (node.draining) reasons.push('draining');
  if (node.ejectedUntil > now) reasons.push('ejected');
  if (node.suspectUntil > now) reasons.push('suspect');
  if (isShutFor(node, task.model, { config, now })) reasons.push('breaker-open');
  if (task.triedNodes?.includes(node.spec.id)) reasons.push('tried-before');
  reasons.push(...roomReasons(node, now, config));
  const rate = node.deadlineRateOf(task.spec, node.running.length + 1);
  if (now + task.deadlineWorkUs / rate > task.deadlineAt) reasons.push('too-slow');
  return reasons;
}

function roomReasons(node: NodeRecord, now: MonoUs, config: SchedulerConfig): readonly IneligibleReason[] {
  const reasons: IneligibleReason[] = [];
  const isFull = node.running.length >= node.slotsMax(config);
  if (node.refusedUntil > now) reasons.push('refused-recently');
  if (node.readingUntil > now) reasons.push('reading-full');
  if (node.drainLongUntil > now) reasons.push('drain-too-long');
  if (!isFull) return reasons;
  if (node.isTrial) reasons.push('half-open-busy');
  else if (!node.verified && node.spec.slots !== 1) reasons.push('slow-start');
  else reasons.push('no-room');
  return reasons;
}
