/**
 * An emulated node: answers a chat completion after a fixed time, many at once. Told `hang` by its parent, it takes
 * requests for the model `stuck` and never answers them. Tells its port to its parent.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

const SERVICE_MS = 50;
const ANSWER = JSON.stringify({
  id: 'c',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content: 'hello' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 8, completion_tokens: 1, total_tokens: 9 },
});
const MODELS = JSON.stringify({ object: 'list', data: [{ id: 'stuck' }, { id: 'quick' }] });

let hangs = false;
process.on('message', (message) => {
  hangs = message === 'hang';
  process.send?.({ hangs });
});

const server = createServer((req, res) => {
  let body = '';
  req.setEncoding('utf8');
  req.on('data', (chunk: string) => {
    body += chunk;
  });
  req.on('end', () => {
    res.setHeader('content-type', 'application/json');
    if (req.method === 'GET') res.end(MODELS);
    else if (!hangs || !body.includes('"stuck"')) setTimeout(() => res.end(ANSWER), SERVICE_MS);
  });
});
server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }));
