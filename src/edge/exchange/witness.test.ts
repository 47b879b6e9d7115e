import { describe, expect, test } from 'vitest';
import { defaultGatewayConfig } from '../../core/config/index.ts';
import type { RumConfig } from '../../core/config/types.ts';
import { NO_NEEDS } from '../../core/request/needs.ts';
import { NO_METRICS } from '../../ports/metrics-sink.ts';
import type { AttemptTrace, RequestEnd, RequestTrace } from '../../ports/tracing.ts';
import type { Assignment, SubmitSpec } from '../../runtime/contract.ts';
import type { RuntimeLog } from '../../runtime/log.ts';
import { SILENT_LOG } from '../../runtime/log.ts';
import { parseOpenAi } from '../protocols/openai/parse.ts';
import { BeaconDesk } from '../user-side/beacon-desk.ts';
import { UserSide } from '../user-side/user-side.ts';
import { Witness } from './witness.ts';

const SUBMIT: SubmitSpec = {
  className: 'normal',
  tenant: 'acme',
  model: 'tiny',
  needs: NO_NEEDS,
  workUs: 1,
  firstByteWorkUs: 1,
  bytes: 1,
  deadlineUs: 1e6,
  deadlineWished: false,
  stream: false,
  fingerprint: '',
  receivedAt: 100,
};
const ASSIGNMENT: Assignment = {
  nodeId: 'n0',
  attempt: 1,
  upstreamModel: '',
  abortFreesSlot: true,
  silence: { firstByteUs: 0, idleUs: 0 },
};

class RecordingTrace implements RequestTrace {
  readonly traceId = 'a'.repeat(32);
  readonly spanId = 'b'.repeat(16);
  readonly continues = false;
  readonly ends: RequestEnd[] = [];
  readonly told: string[] = [];
  #attempts = 0;

  event(event: string): void {
    this.told.push(event);
  }

  attempt(): AttemptTrace {
    this.#attempts += 1;
    const name = `attempt ${this.#attempts}`;
    const { told } = this;
    return {
      traceparent: name,
      event: (event) => void told.push(`${name} ${event}`),
      end: ({ kind }) => void told.push(`${name} ${kind}`),
    };
  }

  end(end: RequestEnd): void {
    this.ends.push(end);
  }
}

interface World {
  readonly witness: Witness;
  readonly trace: RecordingTrace;
  readonly lines: Readonly<Record<string, unknown>>[];
}

function world(): World {
  const parsed = parseOpenAi(
    'chat',
    Buffer.from('{"model":"tiny","messages":[{"role":"user","content":"secret"}]}'),
  );
  if (parsed.kind !== 'request') throw new Error(parsed.detail);
  const trace = new RecordingTrace();
  const lines: Readonly<Record<string, unknown>>[] = [];
  const log: RuntimeLog = { ...SILENT_LOG, debug: (fields) => void lines.push(fields) };
  const userSide = new UserSide(NO_METRICS);
  const config = (): RumConfig => defaultGatewayConfig({}).rum;
  const beacons = new BeaconDesk({ config, now: () => 0, userSide, metrics: NO_METRICS });
  const witness = new Witness(
    { metrics: NO_METRICS, log, beacons },
    { request: parsed.request, submit: SUBMIT, trace, nodeVisible: true },
  );
  witness.submitted('id.1', 200);
  return { witness, trace, lines };
}

describe('Witness', () => {
  test('ends once, when both the outcome and the client’s end are known, in either order', () => {
    for (const order of ['outcome first', 'client first']) {
      const { witness, trace, lines } = world();
      if (order === 'outcome first') {
        witness.ended('served', '', 300);
        expect(trace.ends).toEqual([]);
        witness.closed('whole', 900);
      } else {
        witness.closed('streaming', 300);
        expect(trace.ends).toEqual([]);
        witness.ended('cancelled', '', 900);
      }
      witness.closed('whole', 1_000);
      expect(trace.ends).toHaveLength(1);
      expect(trace.ends[0]).toMatchObject({
        at: 900,
        leftWhile: order === 'outcome first' ? '' : 'streaming',
      });
      expect(lines).toHaveLength(1);
      expect(JSON.stringify(lines)).not.toContain('secret');
      expect(lines[0]).toMatchObject({ request: 'id.1', trace_id: trace.traceId, span_id: trace.spanId });
    }
  });

  test('tells how long it waited, also when it waited for nothing', () => {
    const served = world();
    served.witness.assigned(ASSIGNMENT, 'tiny', 700);
    served.witness.ended('served', '', 5_000);
    served.witness.closed('whole', 5_000);
    expect(served.trace.ends[0]).toMatchObject({ queueWaitUs: 500, attempts: 1 });
    const expired = world();
    expired.witness.ended('wait-expired', '', 9_200);
    expired.witness.closed('whole', 9_300);
    expect(expired.trace.ends[0]).toMatchObject({ queueWaitUs: 9_000, attempts: 0 });
  });

  test('ends the attempt that ended, not the one that runs', () => {
    const { witness, trace } = world();
    const first = witness.assigned(ASSIGNMENT, 'tiny', 300);
    const second = witness.assigned({ ...ASSIGNMENT, attempt: 2 }, 'tiny', 400);
    witness.attemptEnded(first, { kind: 'aborted' }, 500);
    witness.nodeFirstByte(600);
    witness.attemptEnded(second, { kind: 'ok' }, 700);
    expect(trace.told).toEqual([
      'dispatched',
      'dispatched',
      'attempt 1 aborted',
      'attempt 2 first-byte',
      'attempt 2 ok',
    ]);
  });
});
