/**
 * Accelerator memory from the metrics page of an exporter of NVIDIA's Data Center GPU Manager (DCGM): framebuffer used
 * and free, by GPU and, where a GPU is divided, by instance. The fullest of those that the node uses decides, since the
 * first one that is full stops the engine.
 *
 * Source: dcgm-exporter, default counters (`DCGM_FI_DEV_FB_USED`, `DCGM_FI_DEV_FB_FREE`, both in MiB).
 */
import type { DeviceMemory } from '../../core/overload/index.ts';
import type { DeviceTelemetry } from '../../ports/device-telemetry.ts';
import { readLabelled } from './prometheus-text.ts';
import { smallGet } from './small-get.ts';

const USED = 'DCGM_FI_DEV_FB_USED';
const FREE = 'DCGM_FI_DEV_FB_FREE';
const GPU = 'gpu';
const INSTANCE = 'GPU_I_ID';

export function createDcgmTelemetry(): DeviceTelemetry {
  return {
    async read(source, timeoutMs) {
      // The page is another service: the node's own headers and credential are not for it.
      const answer = await smallGet({ id: '', url: source.url, headers: [] }, '', timeoutMs);
      if (answer.kind !== 'answer' || answer.status !== 200) return undefined;
      const memoryUse = fullestOf(answer.body, source.gpus);
      if (memoryUse === undefined) return undefined;
      const { reservedUse } = source;
      return reservedUse === undefined ? { memoryUse } : { memoryUse, reservedUse };
    },
  };
}

/** Used over used and free, of the fullest device that tells both; `gpus` empty stands for all of the page. */
function fullestOf(page: string, gpus: readonly string[]): DeviceMemory['memoryUse'] | undefined {
  const samples = readLabelled(page, new Set([USED, FREE]), [GPU, INSTANCE]);
  const free = new Map(
    samples.flatMap((sample) => (sample.name === FREE ? [[keyOf(sample), sample.value]] : [])),
  );
  let fullest: number | undefined;
  for (const sample of samples) {
    const left = free.get(keyOf(sample));
    if (sample.name !== USED || left === undefined || !isOurs(sample, gpus)) continue;
    const total = sample.value + left;
    if (sample.value < 0 || left < 0 || total === 0) continue;
    fullest = Math.max(fullest ?? 0, sample.value / total);
  }
  return fullest;
}

type LabelledSample = ReturnType<typeof readLabelled>[number];

function keyOf({ labels }: LabelledSample): string {
  return labels.join('/');
}

function isOurs({ labels }: LabelledSample, gpus: readonly string[]): boolean {
  return gpus.length === 0 || gpus.includes(labels[0] ?? '');
}
