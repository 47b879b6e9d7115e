/** `GET /v1/models` and `/v1/models/{id}` in the OpenAI shape. */

/** Clients only show it; a model behind a gateway has no one birthday. */
const CREATED_S = 0;
const OWNER = 'spillway';

interface ModelRow {
  readonly id: string;
  readonly object: 'model';
  readonly created: number;
  readonly owned_by: string;
}

function modelRow(id: string): ModelRow {
  return { id, object: 'model', created: CREATED_S, owned_by: OWNER };
}

export function renderModel(id: string): string {
  return JSON.stringify(modelRow(id));
}

export function renderModels(ids: readonly string[]): string {
  return JSON.stringify({ object: 'list', data: ids.map(modelRow) });
}
