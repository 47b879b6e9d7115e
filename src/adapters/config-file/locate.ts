/** Where in the text a path of the configuration stands, for messages that an editor can jump to. */
import { type Document, isMap, isNode, isScalar, type LineCounter, type YAMLMap } from 'yaml';

export type Locate = (
  path: readonly (string | number)[],
  isKey?: boolean,
) => { readonly line: number; readonly column: number };

/** A value that is not there is located at the nearest thing around it that is. */
export function createLocate(document: Document, lines: LineCounter): Locate {
  return (path, isKey = false) => {
    for (let length = path.length; length >= 0; length--) {
      const offset = offsetOf(document, path.slice(0, length), isKey && length === path.length);
      if (offset === undefined) continue;
      const { line, col } = lines.linePos(offset);
      return { line, column: col };
    }
    return { line: 1, column: 1 };
  };
}

function offsetOf(
  document: Document,
  path: readonly (string | number)[],
  isKey: boolean,
): number | undefined {
  if (isKey) {
    const parent: unknown = path.length === 1 ? document.contents : document.getIn(path.slice(0, -1), true);
    return isMap(parent) ? keyOffset(parent, path.at(-1)) : undefined;
  }
  const node: unknown = path.length === 0 ? document.contents : document.getIn(path, true);
  return isNode(node) ? node.range?.[0] : undefined;
}

function keyOffset(map: YAMLMap, name: unknown): number | undefined {
  for (const pair of map.items) {
    if (isScalar(pair.key) && pair.key.value === name) return pair.key.range?.[0];
  }
  return undefined;
}
