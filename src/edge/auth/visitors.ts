/** Who stands at the door: whether its connection may ask at all, and which tenant it is, under the configuration in force. */
import type { GatewayConfig } from '../../core/config/types.ts';
import type { Gateway } from '../../runtime/contract.ts';
import type { ClientRequest } from '../http/client-request.ts';
import { keylessRefusal } from '../http/guard.ts';
import type { RequestHead } from '../http/head.ts';
import { type Refusal, refuse } from '../outcomes/refusal.ts';
import { createIdentity, type Identity, type Tenant } from './keys.ts';

export class Visitors {
  readonly #gateway: Gateway;
  #identity: Identity;
  #identityOf: GatewayConfig;

  constructor(gateway: Gateway) {
    this.#gateway = gateway;
    this.#identityOf = gateway.config;
    this.#identity = createIdentity(gateway.config);
  }

  /** The rules of the configuration in force; a reload replaces the configuration object. */
  get rules(): Identity {
    const { config } = this.#gateway;
    if (config !== this.#identityOf) {
      this.#identityOf = config;
      this.#identity = createIdentity(config);
    }
    return this.#identity;
  }

  /** What a request is refused for before it is looked at; undefined when it may go on. */
  checkPeer(request: ClientRequest, head: RequestHead): Refusal | undefined {
    if (head.hostCount > 1 || (head.hostCount === 0 && request.minorVersion > 0)) {
      return refuse('bad-request', 'exactly one Host header is needed');
    }
    if (!this.rules.isKeyless) return undefined;
    const rule = keylessRefusal({
      host: head.host,
      origin: head.origin,
      remoteAddress: request.remoteAddress,
    });
    return rule === '' ? undefined : refuse('forbidden', rule);
  }

  /**
   * A connection that shows the same credentials again under the same rules is whom it was: hashing a key for each request
   * would be a tenth of the gateway's own work. What is remembered is the connection's own secret, and no other's.
   */
  identify({ memory }: ClientRequest, { authorization, apiKey }: RequestHead): Tenant | undefined {
    const { rules } = this;
    if (memory.rules === rules && memory.authorization === authorization && memory.apiKey === apiKey) {
      return memory.tenant as Tenant;
    }
    const tenant = rules.identify(authorization, apiKey);
    if (tenant === undefined) return undefined;
    memory.authorization = copied(authorization);
    memory.apiKey = copied(apiKey);
    memory.rules = rules;
    memory.tenant = tenant;
    return tenant;
  }
}

/** A string of its own: a part of the head's text would hold all of it as long as the connection lives. */
function copied(text: string): string {
  return text === '' ? '' : Buffer.from(text, 'latin1').toString('latin1');
}
