/**
 * A fixed number of slots and a bounded queue in front of them, first come first served. This is the engine's own
 * queue, the one a gateway should keep empty; a real server has one, so ours has.
 */

export interface SlotLease {
  /** 0 to `total - 1`. */
  readonly slot: number;
  /** Gives the slot back; the second call does nothing. */
  release(): void;
}

type SlotAnswer =
  | { readonly kind: 'granted'; readonly lease: SlotLease }
  | { readonly kind: 'queue-full' }
  | { readonly kind: 'client-left' };

export interface Slots {
  readonly total: number;
  readonly processing: number;
  readonly deferred: number;
  isBusy(slot: number): boolean;
  /** Resolves once a slot is free or `signal` aborts; at once with `queue-full` when too many wait. */
  acquire(signal: AbortSignal): Promise<SlotAnswer>;
}

export function createSlots(total: number, waitingMax: number): Slots {
  const free = Array.from({ length: total }, (_, slot) => slot);
  const busy = new Set<number>();
  const waiting: ((lease: SlotLease) => void)[] = [];

  const lease = (slot: number): SlotLease => {
    let released = false;
    busy.add(slot);
    return {
      slot,
      release: () => {
        if (released) return;
        released = true;
        busy.delete(slot);
        const next = waiting.shift();
        if (next === undefined) free.push(slot);
        else next(lease(slot));
      },
    };
  };

  return {
    total,
    get processing() {
      return busy.size;
    },
    get deferred() {
      return waiting.length;
    },
    isBusy: (slot) => busy.has(slot),
    acquire: (signal) => {
      if (signal.aborted) return Promise.resolve({ kind: 'client-left' });
      const slot = free.shift();
      if (slot !== undefined) return Promise.resolve({ kind: 'granted', lease: lease(slot) });
      if (waiting.length >= waitingMax) return Promise.resolve({ kind: 'queue-full' });
      return new Promise((resolve) => {
        const grant = (granted: SlotLease): void => {
          signal.removeEventListener('abort', leave);
          resolve({ kind: 'granted', lease: granted });
        };
        const leave = (): void => {
          waiting.splice(waiting.indexOf(grant), 1);
          resolve({ kind: 'client-left' });
        };
        signal.addEventListener('abort', leave, { once: true });
        waiting.push(grant);
      });
    },
  };
}
