import { describe, expect, test } from 'vitest';
import { checkFunctionLengths } from './function-length.ts';
import { formatFinding } from './source-files.ts';

const statements = (count: number, indent: string): string => `${indent}step();\n`.repeat(count);

function check(text: string, path = 'src/a.ts'): readonly string[] {
  return checkFunctionLengths([{ path, text }]).map(formatFinding);
}

describe('checkFunctionLengths', () => {
  test('fails when it sees no source file', () => {
    expect(checkFunctionLengths([])).toMatchObject([{ rule: 'no source file was seen' }]);
  });

  test('allows 70 lines and refuses 71, the first and last line included', () => {
    expect(check(`function a(): void {\n${statements(68, '  ')}}\n`)).toEqual([]);
    expect(check(`function a(): void {\n${statements(69, '  ')}}\n`)).toEqual([
      'src/a.ts:1 a function has 71 lines of its own, 70 are allowed',
    ]);
  });

  test.each([
    ['an arrow', 'const a = () => {\n', '};\n', '  '],
    ['a parameter list over several lines', 'function a(\n  b: number,\n): void {\n', '}\n', '  '],
    ['an exported async function', 'export async function a(): Promise<void> {\n', '}\n', '  '],
    ['a method of a class', 'class A {\n  #b(c: number): void {\n', '  }\n}\n', '    '],
    ['a getter of a literal', 'const a = {\n  get b() {\n', '  },\n};\n', '    '],
  ])('sees %s', (_name, head, tail, indent) => {
    expect(check(`${head}${statements(80, indent)}${tail}`).length).toBe(1);
  });

  test('counts a factory without its methods', () => {
    const method = `    push: () => {\n${statements(40, '      ')}    },\n`;
    expect(check(`function createA(): A {\n  return {\n${method.repeat(5)}  };\n}\n`)).toEqual([]);
  });

  test('counts blocks and conditions of a function to it, not apart', () => {
    const block = `  if (\n    a &&\n    b\n  ) {\n${statements(30, '    ')}  }\n`;
    expect(check(`function a(): void {\n${block.repeat(3)}}\n`).length).toBe(1);
    expect(check(`if (\n  a\n) {\n${statements(80, '  ')}}\n`)).toEqual([]);
  });

  test('leaves tests alone: a describe block is a table of cases', () => {
    expect(check(`describe('a', () => {\n${statements(80, '  ')}});\n`, 'src/a.test.ts')).toEqual([]);
  });
});
