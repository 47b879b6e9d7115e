import { describe, expect, test } from 'vitest';
import { parseGenerateRequest } from './request.ts';

const messages = [{ role: 'user', content: 'hi' }];

describe('parseGenerateRequest', () => {
  test('reads a chat request with text parts and the newer token limit', () => {
    const parts = [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'a' },
          { type: 'text', text: 'b' },
        ],
      },
    ];
    const parsed = parseGenerateRequest(
      { model: 'm', messages: parts, max_tokens: 5, max_completion_tokens: 9, stream: true, stop: 'x' },
      'chat',
      'm',
    );
    expect(parsed).toMatchObject({
      kind: 'ok',
      request: {
        prompt: { kind: 'messages', messages: [{ role: 'user', content: 'ab' }] },
        completionTokensMax: 9,
        stream: true,
        includeUsage: false,
        stop: ['x'],
      },
    });
  });

  test.each([
    ['another model', { model: 'other', messages }, 404],
    ['no messages', { model: 'm', messages: [] }, 400],
    ['an image part', { model: 'm', messages: [{ role: 'user', content: [{ type: 'image_url' }] }] }, 400],
    ['no token at all', { model: 'm', messages, max_tokens: 0 }, 400],
    ['half a token', { model: 'm', messages, max_tokens: 1.5 }, 400],
    ['a temperature out of range', { model: 'm', messages, temperature: 9 }, 400],
    ['two choices', { model: 'm', messages, n: 2 }, 400],
    ['an empty stop text', { model: 'm', messages, stop: [''] }, 400],
  ])('refuses %s', (_name, body, status) => {
    expect(parseGenerateRequest(body, 'chat', 'm')).toMatchObject({ kind: 'refused', status });
  });
});
