/** One line on a terminal that says how far a long command is; nothing where nobody watches. */
const ERASE_LINE = '\r\u001b[K';
/** More often than this nobody reads. */
const UPDATE_MS = 100;

interface Progress {
  update(done: number, total: number): void;
  /** Takes the line away. */
  end(): void;
}

export function createProgress(
  out: { readonly isTTY?: boolean; write(text: string): unknown },
  now: () => number = () => performance.now(),
): Progress {
  if (out.isTTY !== true) return { update() {}, end() {} };
  const startedAt = now();
  let shownAt = Number.NEGATIVE_INFINITY;
  return {
    update(done, total) {
      const at = now();
      if (at - shownAt < UPDATE_MS) return;
      shownAt = at;
      const leftSeconds = (((at - startedAt) / done) * (total - done)) / 1_000;
      out.write(`${ERASE_LINE}${done} of ${total} runs, ${Math.ceil(leftSeconds)} s to go`);
    },
    end() {
      if (shownAt > Number.NEGATIVE_INFINITY) out.write(ERASE_LINE);
    },
  };
}
