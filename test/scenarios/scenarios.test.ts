import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { playScenario } from './scenario.ts';

const FOLDER = new URL('.', import.meta.url);
const FILES: readonly string[] = readdirSync(FOLDER)
  .filter((name) => name.endsWith('.txt'))
  .sort();

test('there are scenarios to play', () => {
  expect(FILES.length).toBeGreaterThanOrEqual(12);
});

describe('scenario', () => {
  test.each(FILES)('%s', (name) => {
    playScenario(readFileSync(new URL(name, FOLDER), 'utf8'), `test/scenarios/${name}`);
  });
});

describe('playScenario', () => {
  test('names file, line, command and what it found when an expectation is not met', () => {
    expect(() => playScenario('node a - x1\nsubmit 1 normal 1s\nexpect 1 on b', 'story.txt')).toThrow(
      'story.txt:3: expect 1 on b\n  Expected on b, found on a: that is where task 1 stands',
    );
  });

  test.each([
    ['nonsense 1', 'Unknown command nonsense'],
    ['node a - x1 colour red', 'Unknown option colour'],
    ['at noon', 'noon is no duration'],
    ['expect queue', 'Expected a number'],
    ['expect queue 0 1', 'Unexpected 1'],
    ['fail 1 reset', 'Task 1 runs nowhere: was never submitted'],
  ])('refuses %s', (command, reason) => {
    expect(() => playScenario(`node z - x1\n${command}`, 'story.txt')).toThrow(
      `story.txt:2: ${command}\n  ${reason}`,
    );
  });

  test('refuses a scenario that expects nothing', () => {
    expect(() => playScenario('node a - x1', 'story.txt')).toThrow('shows nothing');
  });
});
