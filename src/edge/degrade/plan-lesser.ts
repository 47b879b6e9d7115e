import { planAnswers } from '../../core/degrade/index.ts';
import type { Gateway } from '../../runtime/contract.ts';
import type { Understood } from '../arrival.ts';
import type { CachedAnswer } from '../cache/answer-cache.ts';
import { defaultTextOf } from './default-answer.ts';
import { LesserAnswers } from './lesser-answers.ts';

/** From the client's consent, the configuration and what is remembered; undefined where nothing may stand in. */
export function planLesser(
  gateway: Gateway,
  { request, className, model, consent }: Understood,
  remembered: CachedAnswer | undefined,
): LesserAnswers | undefined {
  const { scheduler } = gateway.config;
  const { endpoint, stream, shape, needs, usesContext } = request;
  const configured = scheduler.models.find((one) => one.id === model);
  const defaultText = defaultTextOf(configured, endpoint);
  const planned = planAnswers(scheduler, consent, {
    request: {
      className,
      model,
      shape,
      needs,
      stream,
      usesContext,
      hasRemembered: remembered !== undefined,
      hasDefault: defaultText !== undefined,
    },
    estimate: (name, lesser) => gateway.estimate(name, lesser),
  });
  if (planned.length === 0) return undefined;
  const isChat = endpoint === 'chat';
  return new LesserAnswers({ planned, remembered, defaultText, model, isChat, stream });
}
