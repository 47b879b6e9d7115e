/** The paths of the data plane. */
import { OPENAI_PATHS, type OpenAiEndpoint } from './protocols/openai/parse.ts';
import { RUM_PATH } from './tenant/rum.ts';
import { TENANT_PATH } from './tenant/tenant-plane.ts';

export type ModelRoute = { readonly kind: 'models' } | { readonly kind: 'model'; readonly id: string };

export type Route =
  | { readonly kind: 'inference'; readonly endpoint: OpenAiEndpoint }
  | ModelRoute
  | { readonly kind: 'tenant'; readonly path: string }
  | { readonly kind: 'rum' };

const INFERENCE_ROUTES: ReadonlyMap<string, Route> = new Map(
  Object.entries(OPENAI_PATHS).map(([endpoint, path]): [string, Route] => [
    path,
    { kind: 'inference', endpoint: endpoint as OpenAiEndpoint },
  ]),
);
export const INFERENCE_URLS: ReadonlyMap<string, string> = new Map(
  [...INFERENCE_ROUTES.keys()].map((url) => [url, url]),
);
const RUM_ROUTE: Route = { kind: 'rum' };
const MODELS_ROUTE: Route = { kind: 'models' };
const MODEL_PREFIX = '/v1/models/';

/** Queries are allowed and ignored, since no endpoint here has any. */
export function findRoute(url: string): Route | undefined {
  const direct = INFERENCE_ROUTES.get(url);
  if (direct !== undefined) return direct;
  const path = (url.startsWith('/') ? url : originForm(url)).split('?', 1)[0] as string;
  if (path === '/v1/models') return MODELS_ROUTE;
  if (path.startsWith(MODEL_PREFIX) && path.length > MODEL_PREFIX.length) {
    return { kind: 'model', id: decodeId(path.slice(MODEL_PREFIX.length)) };
  }
  if (TENANT_PATH.test(path)) return { kind: 'tenant', path };
  if (path === RUM_PATH) return RUM_ROUTE;
  return INFERENCE_ROUTES.get(path);
}

/** The path of a request line in absolute form, which servers must understand (RFC 9112, 3.2.2). */
function originForm(url: string): string {
  const match = /^https?:\/\/[^/?#]*(\/.*)$/i.exec(url);
  return match === null ? url : (match[1] as string);
}

function decodeId(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
