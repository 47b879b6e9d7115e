/** The list of nodes with this one found. */
export function nodeHref(id: string): string {
  return `#/nodes?find=${encodeURIComponent(id)}`;
}
