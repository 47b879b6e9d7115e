/** Engine drivers by the configuration's `protocol`, and the search for engines on this machine. */
import type { EngineDriver } from '../../ports/engine-driver.ts';
import { createLlamaCppDriver } from './llama-cpp-driver.ts';
import { createOpenAiDriver } from './openai-driver.ts';
import { createVllmDriver } from './vllm-driver.ts';

export { createHostTelemetry } from './host-telemetry.ts';
export { detectEngine, detectEngines, LOCAL_CANDIDATES } from './detect-engine.ts';

export function createEngineDrivers(): readonly EngineDriver[] {
  return [createOpenAiDriver(), createVllmDriver(), createLlamaCppDriver()];
}
