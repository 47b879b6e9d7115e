/**
 * Accelerators from the metrics page of their host: an exporter of NVIDIA's Data Center GPU Manager (DCGM), by GPU and,
 * where a GPU is divided, by instance; or a Triton server, which tells the same of the GPUs it sees. Names are lists:
 * the first one that a page has counts. What the host waits for is read in host-pressure.ts, on the same page or another.
 *
 * A value outside of what can be is unknown: DCGM writes very large numbers where it has none.
 *
 * Sources: dcgm-exporter, default counters; Triton Inference Server, metrics, GPU.
 */
import type { DurationMs } from '../../base/units.ts';
import type { AcceleratorReading } from '../../core/health/index.ts';
import type { DeviceMemory } from '../../core/overload/index.ts';
import type { DeviceTelemetry } from '../../ports/device-telemetry.ts';
import { pressureOf } from './host-pressure.ts';
import { type LabelledSample, readLabelled } from './prometheus-text.ts';
import { smallGet } from './small-get.ts';

/** A host has eight GPUs, or four divided in seven. */
export const ACCELERATORS_MAX = 32;
const MIB = 1_048_576;
const BYTES_MAX: number = 2 ** 50;

type Quantity = Exclude<keyof AcceleratorReading, 'id'> | 'memoryTotalBytes';

interface Source {
  /** The page's name, and what its unit is in ours. */
  readonly names: readonly (readonly [name: string, scale: number])[];
  readonly min: number;
  readonly max: number;
}

const SOURCES: Readonly<Record<Quantity, Source>> = {
  busy: {
    names: [
      ['DCGM_FI_DEV_GPU_UTIL', 0.01],
      ['nv_gpu_utilization', 1],
    ],
    min: 0,
    max: 1,
  },
  engineActive: { names: [['DCGM_FI_PROF_GR_ENGINE_ACTIVE', 1]], min: 0, max: 1 },
  memoryActive: { names: [['DCGM_FI_PROF_DRAM_ACTIVE', 1]], min: 0, max: 1 },
  memoryUsedBytes: {
    names: [
      ['DCGM_FI_DEV_FB_USED', MIB],
      ['nv_gpu_memory_used_bytes', 1],
    ],
    min: 0,
    max: BYTES_MAX,
  },
  memoryFreeBytes: { names: [['DCGM_FI_DEV_FB_FREE', MIB]], min: 0, max: BYTES_MAX },
  memoryTotalBytes: { names: [['nv_gpu_memory_total_bytes', 1]], min: 0, max: BYTES_MAX },
  temperatureC: { names: [['DCGM_FI_DEV_GPU_TEMP', 1]], min: -50, max: 200 },
  powerW: {
    names: [
      ['DCGM_FI_DEV_POWER_USAGE', 1],
      ['nv_gpu_power_usage', 1],
    ],
    min: 0,
    max: 10_000,
  },
  xid: { names: [['DCGM_FI_DEV_XID_ERRORS', 1]], min: 0, max: 10_000 },
  pcieReplays: { names: [['DCGM_FI_DEV_PCIE_REPLAY_COUNTER', 1]], min: 0, max: 2 ** 31 - 17 },
};
const QUANTITIES = Object.keys(SOURCES) as Quantity[];
const WANTED = new Set(Object.values(SOURCES).flatMap(({ names }) => names.map(([name]) => name)));
const LABELS = ['gpu', 'gpu_uuid', 'GPU_I_ID'];

export function createHostTelemetry(): DeviceTelemetry {
  return {
    async read(source, timeoutMs) {
      const { url, pressureUrl = url } = source;
      const devicePage = pageAt(url, timeoutMs);
      const [page, otherPage] = await Promise.all([
        devicePage,
        pressureUrl === url ? devicePage : pageAt(pressureUrl, timeoutMs),
      ]);
      const accelerators = page === undefined ? [] : acceleratorsOf(page, source.gpus);
      const pressure = otherPage === undefined ? undefined : pressureOf(otherPage);
      if (accelerators.length === 0 && pressure === undefined) return undefined;
      const memory = memoryOf(accelerators, source.reservedUse);
      return {
        accelerators,
        ...(memory === undefined ? {} : { memory }),
        ...(pressure === undefined ? {} : { pressure }),
      };
    },
  };
}

/** The page is another service: the node's own headers and credential are not for it. */
async function pageAt(url: string, timeoutMs: DurationMs): Promise<string | undefined> {
  const answer = await smallGet({ id: '', url, headers: [] }, '', timeoutMs);
  return answer.kind === 'answer' && answer.status === 200 ? answer.body : undefined;
}

/** `gpus` empty stands for all of the page. */
export function acceleratorsOf(page: string, gpus: readonly string[]): readonly AcceleratorReading[] {
  const byDevice = new Map<string, LabelledSample[]>();
  for (const sample of readLabelled(page, WANTED, LABELS)) {
    const [gpu = '', uuid = '', instance = ''] = sample.labels;
    const name = gpu === '' ? uuid : gpu;
    if (gpus.length > 0 && !gpus.includes(name)) continue;
    const id = instance === '' ? name : `${name}/${instance}`;
    const known = byDevice.get(id);
    if (known !== undefined) known.push(sample);
    else if (byDevice.size < ACCELERATORS_MAX) byDevice.set(id, [sample]);
  }
  return [...byDevice].flatMap(([id, samples]) => {
    const found = readingOf(samples);
    return Object.keys(found).length === 0 ? [] : [{ id, ...found }];
  });
}

function readingOf(samples: readonly LabelledSample[]): Omit<AcceleratorReading, 'id'> {
  const values: { [K in Quantity]?: number } = {};
  for (const quantity of QUANTITIES) {
    const value = valueOf(samples, SOURCES[quantity]);
    if (value !== undefined) values[quantity] = value;
  }
  const { memoryTotalBytes, memoryUsedBytes, ...reading } = values;
  if (memoryUsedBytes === undefined) return reading;
  if (memoryTotalBytes === undefined || memoryTotalBytes < memoryUsedBytes)
    return { ...reading, memoryUsedBytes };
  return { memoryFreeBytes: memoryTotalBytes - memoryUsedBytes, ...reading, memoryUsedBytes };
}

function valueOf(samples: readonly LabelledSample[], { names, min, max }: Source): number | undefined {
  for (const [name, scale] of names) {
    const sample = samples.find((one) => one.name === name);
    if (sample === undefined) continue;
    const value = sample.value * scale;
    return value >= min && value <= max ? value : undefined;
  }
  return undefined;
}

/** The fullest of those that the node uses decides, since the first one that is full stops the engine. */
function memoryOf(
  accelerators: readonly AcceleratorReading[],
  reservedUse: number | undefined,
): DeviceMemory | undefined {
  let fullest: number | undefined;
  for (const { memoryUsedBytes: used, memoryFreeBytes: free } of accelerators) {
    if (used === undefined || free === undefined || used + free === 0) continue;
    fullest = Math.max(fullest ?? 0, used / (used + free));
  }
  if (fullest === undefined) return undefined;
  return reservedUse === undefined ? { memoryUse: fullest } : { memoryUse: fullest, reservedUse };
}
