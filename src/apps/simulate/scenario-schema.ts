/** The schema of scenario files, with the gateway's own configuration inside; and the same for editors. */
import { z } from 'zod';
import { configSchema } from '../../adapters/config-file/schema.ts';
import type { ScenarioFile } from '../../simulator/scenario/file-types.ts';
import { createScenarioSchema } from '../../simulator/scenario/schema.ts';

export const scenarioSchema: z.ZodType<ScenarioFile> = createScenarioSchema(configSchema);

export function scenarioJsonSchema(): unknown {
  return z.toJSONSchema(scenarioSchema, { io: 'input', reused: 'ref' });
}
