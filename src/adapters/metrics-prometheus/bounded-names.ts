/**
 * Which names may become label values. A name from a request is unbounded; only names that somebody configured or a
 * node offers are kept, and only so many; all the rest is `other`.
 */
export const OTHER = 'other';

export interface BoundedNames {
  /** The name itself, or `other`. */
  label(name: string): string;
}

export function createBoundedNames(max: number, isKnown: (name: string) => boolean): BoundedNames {
  const kept = new Set<string>();
  return {
    label(name) {
      // A request that never named one is told apart from one whose name is unknown.
      if (name === '' || kept.has(name)) return name;
      if (kept.size >= max || !isKnown(name)) return OTHER;
      kept.add(name);
      return name;
    },
  };
}
