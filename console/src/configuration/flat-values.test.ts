import { expect, test } from 'vitest';
import { flatValues } from './flat-values.ts';

test('paths are those of `spillway config`, each with the origin of the nearest part that was given', () => {
  const config = {
    scheduler: { classes: [{ name: 'low', weight: 3 }], placement: { heldMax: 16 } },
    tenants: [],
    models: [{ id: 'llama-3.1:8b', off: true }],
  };
  const origins = { classes: 'spillway.yaml:1', 'classes.low.weight': 'overlay (version 2)' };
  expect(flatValues(config, origins)).toEqual([
    { path: 'classes.low.name', value: 'low', origin: 'spillway.yaml:1' },
    { path: 'classes.low.weight', value: 3, origin: 'overlay (version 2)' },
    { path: 'placement.heldMax', value: 16, origin: 'default' },
    { path: 'tenants', value: [], origin: 'default' },
    { path: 'models[llama-3.1:8b].id', value: 'llama-3.1:8b', origin: 'default' },
    { path: 'models[llama-3.1:8b].off', value: true, origin: 'default' },
  ]);
});
