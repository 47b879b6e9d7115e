import { describe, expect, test } from 'vitest';
import { ACCELERATORS_MAX, acceleratorsOf } from './host-telemetry.ts';

const DCGM = `# HELP DCGM_FI_DEV_GPU_UTIL GPU utilization (in %).
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-1",device="nvidia0",modelName="NVIDIA A100"} 97
DCGM_FI_DEV_GPU_UTIL{gpu="1",UUID="GPU-2",device="nvidia1",modelName="NVIDIA A100"} 140737488355328
DCGM_FI_PROF_GR_ENGINE_ACTIVE{gpu="0",UUID="GPU-1"} 0.91
DCGM_FI_PROF_DRAM_ACTIVE{gpu="0",UUID="GPU-1"} 0.4
DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-1"} 1024
DCGM_FI_DEV_FB_FREE{gpu="0",UUID="GPU-1"} 3072
DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-1"} 71
DCGM_FI_DEV_GPU_TEMP{gpu="1",UUID="GPU-2"} 40
DCGM_FI_DEV_POWER_USAGE{gpu="0",UUID="GPU-1"} 310.5
DCGM_FI_DEV_XID_ERRORS{gpu="0",UUID="GPU-1",err_code="0"} 0
DCGM_FI_DEV_PCIE_REPLAY_COUNTER{gpu="0",UUID="GPU-1"} 2
`;

describe('acceleratorsOf', () => {
  test('reads what an exporter of DCGM tells, and leaves out what it does not know', () => {
    expect(acceleratorsOf(DCGM, [])).toEqual([
      {
        id: '0',
        busy: 0.97,
        engineActive: 0.91,
        memoryActive: 0.4,
        memoryUsedBytes: 1_073_741_824,
        memoryFreeBytes: 3_221_225_472,
        temperatureC: 71,
        powerW: 310.5,
        xid: 0,
        pcieReplays: 2,
      },
      { id: '1', temperatureC: 40 },
    ]);
    expect(acceleratorsOf(DCGM, ['1'])).toEqual([{ id: '1', temperatureC: 40 }]);
  });

  test('reads what Triton tells of its GPUs', () => {
    const page = `nv_gpu_utilization{gpu_uuid="GPU-9"} 0.25
nv_gpu_memory_total_bytes{gpu_uuid="GPU-9"} 4000
nv_gpu_memory_used_bytes{gpu_uuid="GPU-9"} 1000
nv_gpu_power_usage{gpu_uuid="GPU-9"} 55
`;
    expect(acceleratorsOf(page, [])).toEqual([
      { id: 'GPU-9', busy: 0.25, memoryUsedBytes: 1_000, memoryFreeBytes: 3_000, powerW: 55 },
    ]);
  });

  test('tells the parts of a divided GPU apart', () => {
    const page = [1, 2].map(
      (part) => `DCGM_FI_PROF_GR_ENGINE_ACTIVE{gpu="0",GPU_I_ID="${part}"} 0.${part}\n`,
    );
    expect(acceleratorsOf(page.join(''), ['0'])).toEqual([
      { id: '0/1', engineActive: 0.1 },
      { id: '0/2', engineActive: 0.2 },
    ]);
  });

  test(`keeps ${ACCELERATORS_MAX} devices, and none of a page that tells nothing`, () => {
    const page = Array.from({ length: 100 }, (_, i) => `DCGM_FI_DEV_GPU_TEMP{gpu="${i}"} 50\n`).join('');
    expect(acceleratorsOf(page, [])).toHaveLength(ACCELERATORS_MAX);
    expect(acceleratorsOf('<html></html>', [])).toEqual([]);
    expect(acceleratorsOf('DCGM_FI_DEV_GPU_TEMP{gpu="0"} NaN\n', [])).toEqual([]);
  });
});
