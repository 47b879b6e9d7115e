import { needsWork } from '../../core/degrade/index.ts';
import type { Usage } from '../../core/request/task.ts';
import type { Gateway } from '../../runtime/contract.ts';
import type { ExchangeSpec } from './contract.ts';

/** What a node's usage teaches of the model that ran. An answer that was made to be short tells nothing of how long answers are. */
export function learnUsage(gateway: Gateway, { submit, request, lesser }: ExchangeSpec, usage: Usage): void {
  const current = lesser?.current;
  if (current === undefined || !needsWork(current.alternative)) {
    gateway.learn(submit.model, request.shape, usage);
    return;
  }
  const { alternative, shape } = current;
  const { promptTokens } = usage;
  if (alternative.how === 'model') gateway.learn(alternative.model, shape, usage);
  else if (promptTokens !== undefined) gateway.learn(alternative.model, shape, { promptTokens });
}
