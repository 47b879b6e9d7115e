import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { NOTHING_LOWERED } from '../../../core/degrade/index.ts';
import { editBody } from './body-edits.ts';
import { topLevelMembers } from './json-members.ts';
import { type OpenAiEndpoint, parseOpenAi } from './parse.ts';

/** Object texts with names that repeat, escape, and nest, and with free spacing. */
const objectText = fc
  .array(
    fc.tuple(
      fc.oneof(
        fc.string(),
        fc.constantFrom('model', 'priority', 'service_tier', 'stream_options', 'messages'),
      ),
      fc.jsonValue({ maxDepth: 3 }),
      fc.constantFrom('', ' ', '\n\t'),
    ),
    { maxLength: 8 },
  )
  .map((rows) => {
    const members = rows.map(
      ([name, value, gap]) => `${gap}${JSON.stringify(name)}${gap}:${gap}${JSON.stringify(value)}${gap}`,
    );
    return { rows, text: `{${members.join(',')}}` };
  });

describe('topLevelMembers', () => {
  it('finds each member where JSON has it', () => {
    fc.assert(
      fc.property(objectText, ({ rows, text }) => {
        const json = Buffer.from(text);
        const found = topLevelMembers(json);
        expect(found.map((member) => member.name)).toEqual(rows.map(([name]) => name));
        for (const [i, member] of found.entries()) {
          const value = json.toString('utf8', member.valueStart, member.end);
          expect(value).toBe(JSON.stringify(rows[i]?.[1]));
        }
      }),
      { numRuns: 400 },
    );
  });

  it('skips long strings with quotes and backslashes at every place', () => {
    for (let length = 40; length < 60; length++) {
      for (const tail of ['\\', '"', '\\"', '\\\\"']) {
        const value = `${'x'.repeat(length)}${tail}${'y'.repeat(100)}`;
        const json = Buffer.from(JSON.stringify({ a: value, b: 1 }));
        expect(topLevelMembers(json).map((member) => member.name)).toEqual(['a', 'b']);
      }
    }
  });

  it('reads an escaped name as the name that it is', () => {
    expect(topLevelMembers(Buffer.from('{"mod\\u0065l":1}'))[0]?.name).toBe('model');
  });
});

describe('editBody', () => {
  it('changes what it must and nothing else', () => {
    fc.assert(
      fc.property(objectText, fc.boolean(), fc.boolean(), ({ rows, text }, isRenamed, asksUsage) => {
        const edits = {
          model: 'old',
          removesHints: true,
          streamOptions: asksUsage ? '{"include_usage":true}' : '',
          hasStreamOptions: rows.some(([name]) => name === 'stream_options'),
        };
        const edited = Buffer.concat(
          editBody(Buffer.from(text), edits, {
            modelName: isRenamed ? 'new' : 'old',
            lowered: NOTHING_LOWERED,
          }),
        ).toString();
        const expected = Object.fromEntries(rows.map(([name, value]) => [name, value])) as Record<
          string,
          unknown
        >;
        delete expected.priority;
        delete expected.service_tier;
        if (isRenamed && 'model' in expected) expected.model = 'new';
        if (asksUsage) expected.stream_options = { include_usage: true };
        expect(JSON.parse(edited)).toEqual(JSON.parse(JSON.stringify(expected)));
      }),
      { numRuns: 400 },
    );
  });

  it('lowers what is above a limit, adds a limit where there is none, and raises nothing', () => {
    const lowered = { outputTokensMax: 50, steps: 8, size: '512x512' };
    const rewritten = (endpoint: OpenAiEndpoint, members: string): unknown => {
      const parsed = parseOpenAi(endpoint, Buffer.from(`{"model":"m",${members}}`));
      if (parsed.kind !== 'request') throw new Error(parsed.detail);
      return JSON.parse(Buffer.concat(parsed.request.bodyFor('m', lowered)).toString());
    };
    const chat = { ...NOTHING_LOWERED, outputTokensMax: 50 };
    expect(rewritten('images', '"prompt":"x","steps":30,"size":"1024x1024"')).toMatchObject({
      steps: 8,
      size: '512x512',
    });
    expect(rewritten('images', '"prompt":"x","num_inference_steps":5')).toMatchObject({
      num_inference_steps: 5,
      size: '512x512',
    });
    const parsed = parseOpenAi(
      'chat',
      Buffer.from('{"model":"m","messages":[{}],"max_tokens":10,"max_completion_tokens":900}'),
    );
    if (parsed.kind !== 'request') throw new Error(parsed.detail);
    expect(JSON.parse(Buffer.concat(parsed.request.bodyFor('m', chat)).toString())).toEqual({
      model: 'm',
      messages: [{}],
      max_tokens: 10,
      max_completion_tokens: 50,
    });
    expect(rewritten('completions', '"prompt":"x","max_tokens":null')).toMatchObject({ max_tokens: 50 });
  });

  it('hands the very bytes on when nothing changes', () => {
    const body = Buffer.from('{"model":"m","messages":[{}]}');
    const parsed = parseOpenAi('chat', body);
    if (parsed.kind !== 'request') throw new Error(parsed.detail);
    expect(parsed.request.bodyFor('m')[0]).toBe(body);
  });

  it('replaces every spelling of the model, so that no reader finds another one', () => {
    const body = Buffer.from('{"model":"a","mod\\u0065l":"old","messages":[]}');
    const edits = { model: 'old', removesHints: false, streamOptions: '', hasStreamOptions: false };
    expect(
      Buffer.concat(editBody(body, edits, { modelName: 'new', lowered: NOTHING_LOWERED })).toString(),
    ).toBe('{"model":"new","model":"new","messages":[]}');
  });
});
