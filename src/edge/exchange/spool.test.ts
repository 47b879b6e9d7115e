import { afterEach, describe, expect, it, vi } from 'vitest';
import { NO_METRICS } from '../../ports/metrics-sink.ts';
import { type SlowReader, Spool } from './spool.ts';

const LIMITS = { spoolBytesMax: 100, spoolBytesTotalMax: 150, stallMs: 1_000 };

class Reader implements SlowReader {
  bytes = 0;
  readonly told: string[] = [];
  pendingBytes(): number {
    return this.bytes;
  }
  room(): void {
    this.told.push('room');
  }
  cut(): void {
    this.told.push('cut');
  }
}

let nowUs = 0;
let spool: Spool;

function start(): Spool {
  nowUs = 0;
  spool = new Spool(
    () => LIMITS,
    () => nowUs,
    NO_METRICS,
  );
  return spool;
}

function pass(ms: number): void {
  nowUs += ms * 1_000;
  spool.sweep();
}

afterEach(() => spool.close());

describe('Spool', () => {
  it('lets a node go on up to the bound of its reader, and pauses it beyond', () => {
    start();
    const reader = new Reader();
    reader.bytes = 100;
    expect(spool.note(reader)).toBe(true);
    reader.bytes = 101;
    expect(spool.note(reader)).toBe(false);
  });

  it('pauses every node while all readers together are beyond the bound', () => {
    start();
    const [first, second] = [new Reader(), new Reader()];
    first.bytes = 90;
    second.bytes = 61;
    expect(spool.note(first)).toBe(true);
    expect(spool.note(second)).toBe(false);
    expect(spool.totalBytes).toBe(151);
  });

  it('lets a node go on when its reader has taken half', () => {
    start();
    const reader = new Reader();
    reader.bytes = 120;
    spool.note(reader);
    reader.bytes = 51;
    pass(10);
    expect(reader.told).toEqual([]);
    reader.bytes = 50;
    pass(10);
    expect(reader.told).toEqual(['room']);
  });

  it('cuts a reader that takes nothing for too long, and not one that is only slow', () => {
    start();
    const [stalled, steady] = [new Reader(), new Reader()];
    stalled.bytes = 50;
    steady.bytes = 50;
    spool.note(stalled);
    spool.note(steady);
    for (let i = 0; i < 10; i++) {
      steady.bytes--;
      pass(250);
    }
    expect(stalled.told).toEqual(['cut']);
    expect(steady.told).toEqual([]);
    expect(spool.totalBytes).toBe(40);
  });

  it('forgets a reader with all its bytes, also twice', () => {
    start();
    const reader = new Reader();
    reader.bytes = 70;
    spool.note(reader);
    spool.forget(reader);
    spool.forget(reader);
    expect([spool.totalBytes, spool.readers]).toEqual([0, 0]);
  });

  it('keeps a timer only while a reader is behind', () => {
    vi.useFakeTimers();
    start();
    const reader = new Reader();
    reader.bytes = 10;
    spool.note(reader);
    expect(vi.getTimerCount()).toBe(1);
    spool.forget(reader);
    expect(vi.getTimerCount()).toBe(0);
    vi.useRealTimers();
  });
});
