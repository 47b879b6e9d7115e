import { expect, test } from 'vitest';
import { NO_RETRY } from '../core/request/index.ts';
import { TenantUsage, USAGE_TENANTS_MAX } from './tenant-usage.ts';

test('counts a tenant’s ends by outcome, its tokens, and the work of what was answered', () => {
  const usage = new TenantUsage(1_000);
  usage.ended('ada', { kind: 'served' }, 2_000);
  usage.ended('ada', { kind: 'rejected', reason: 'shed', hint: NO_RETRY }, 9_000);
  usage.ended('ada', { kind: 'cancelled' }, 9_000);
  usage.attemptEnded('ada', { kind: 'ok', usage: { promptTokens: 10, outputTokens: 3 } });
  usage.attemptEnded('ada', { kind: 'aborted', passed: { outputTokens: 2 } });
  usage.attemptEnded('ada', { kind: 'declined' });
  usage.ended('bob', { kind: 'served' }, 1_000);
  expect(usage.of('ada')).toEqual({
    since: 1_000,
    requests: { cancelled: 1, served: 1, shed: 1 },
    tokens: { input: 10, output: 5 },
    workMs: 2,
  });
});

test('tenants beyond the bound are counted together and shown to nobody', () => {
  const usage = new TenantUsage(0);
  for (let index = 0; index <= USAGE_TENANTS_MAX; index++)
    usage.ended(`t${index}`, { kind: 'served' }, 1_000);
  expect(usage.of(`t${USAGE_TENANTS_MAX - 1}`).requests).toEqual({ served: 1 });
  expect(usage.of(`t${USAGE_TENANTS_MAX}`).requests).toEqual({});
  expect(usage.of('a-stranger').requests).toEqual({});
});
