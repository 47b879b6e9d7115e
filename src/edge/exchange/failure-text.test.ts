import { expect, test } from 'vitest';
import { failureText } from './failure-text.ts';

const text = (body: string): string => failureText(Buffer.from(body));

test.each([
  ['{"error":{"message":"out of memory","type":"server_error"}}', 'out of memory'],
  ['{"object":"error","message":"engine is dead","code":500}', 'engine is dead'],
  ['{"error":"model runner has stopped"}', 'model runner has stopped'],
  ['{"detail":"Internal Server Error"}', 'Internal Server Error'],
  ['Internal Server Error\nTraceback (most recent call last)', 'Internal Server Error'],
  [' upstream connect error ', 'upstream connect error'],
])('an answer %s says %s', (body, says) => {
  expect(text(body)).toBe(says);
});

test.each(['', '<html>502</html>', '{"error":{"message":7}}', '{"error":null}', '{"cut":"of', '{}'])(
  'an answer %s says nothing',
  (body) => {
    expect(text(body)).toBe('');
  },
);
