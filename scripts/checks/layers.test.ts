import { describe, expect, test } from 'vitest';
import { checkLayers, importsOf } from './layers.ts';
import { formatFinding } from './source-files.ts';

function check(files: Readonly<Record<string, string>>): readonly string[] {
  return checkLayers(Object.entries(files).map(([path, text]) => ({ path, text }))).map(formatFinding);
}

describe('importsOf', () => {
  test('finds imports over several lines, exports, bare and dynamic imports, each with its line', () => {
    const text = [
      'import { a,',
      "  b } from './a.ts';",
      "export type { C } from './c.ts';",
      "import './side.ts';",
      "const d = await import('./d.ts');",
    ].join('\n');
    expect(importsOf(text).map(({ specifier, line }) => `${line} ${specifier}`)).toEqual([
      '2 ./a.ts',
      '3 ./c.ts',
      '4 ./side.ts',
      '5 ./d.ts',
    ]);
  });

  test('overlooks imports in comments and keeps the line of those after', () => {
    const text =
      "/*\n import './x.ts';\n*/\n// import './y.ts';\nconst glob = '**/*.ts';\nimport type { A } from './z.ts';";
    expect(importsOf(text)).toEqual([{ specifier: './z.ts', typeOnly: true, line: 6 }]);
  });
});

describe('checkLayers', () => {
  test('fails when it sees no source file', () => {
    expect(check({})).toEqual(['src no source file was seen']);
    expect(check({ 'scripts/a.ts': '' })).toEqual(['src no source file was seen']);
  });

  test('allows each layer what lies below it', () => {
    expect(
      check({
        'src/apps/cli/main.ts': "import '../../edge/http/a.ts';\nimport '../../adapters/x/a.ts';",
        'src/edge/http/a.ts': "import '../../runtime/loop.ts';\nimport 'node:http';",
        'src/runtime/loop.ts': "import type { P } from '../ports/p.ts';",
        'src/ports/p.ts': "import type { C } from '../core/queue/c.ts';",
        'src/core/queue/c.ts': "import '../../base/b.ts';",
        'src/adapters/x/a.ts': "import type { P } from '../../ports/p.ts';\nimport './b.ts';",
        'src/simulator/s.ts': "import type { C } from '../core/queue/c.ts';\nimport '../hardware/h.ts';",
        'src/emulator/e.ts': "import '../hardware/h.ts';\nimport 'node:http';",
        'src/hardware/h.ts': "import '../base/b.ts';",
      }),
    ).toEqual([]);
  });

  test.each([
    ['base', '../core/c.ts', 'base must not import core'],
    ['core', '../ports/p.ts', 'core must not import ports'],
    ['ports', '../runtime/r.ts', 'ports must not import runtime'],
    ['runtime', '../edge/e.ts', 'runtime must not import edge'],
    ['runtime', '../adapters/x/a.ts', 'runtime must not import adapters'],
    ['edge', '../apps/cli/main.ts', 'edge must not import apps'],
    ['edge', '../adapters/x/a.ts', 'edge must not import adapters'],
    ['adapters', '../edge/e.ts', 'adapters must not import edge'],
    ['simulator', '../runtime/r.ts', 'simulator must not import runtime'],
    ['emulator', '../core/c.ts', 'emulator must not import core'],
    ['hardware', '../core/c.ts', 'hardware must not import core'],
    ['core', '../hardware/h.ts', 'core must not import hardware'],
  ])('refuses %s to import %s', (layer, specifier, rule) => {
    expect(check({ [`src/${layer}/a.ts`]: `import type { X } from '${specifier}';` })).toEqual([
      `src/${layer}/a.ts:1 ${rule}`,
    ]);
  });

  test('refuses one adapter another, also for a type and in a test', () => {
    const rule = 'adapters never import each other: x imports y';
    expect(
      check({
        'src/adapters/x/a.ts': "import type { B } from '../y/b.ts';",
        'src/adapters/x/a.test.ts': "import '../y/b.ts';",
      }),
    ).toEqual([`src/adapters/x/a.ts:1 ${rule}`, `src/adapters/x/a.test.ts:1 ${rule}`]);
  });

  test('lets tests of the runtime stand on an adapter, tests of core not', () => {
    const text = "import '../adapters/registry-memory/index.ts';";
    expect(check({ 'src/runtime/a.test.ts': text, 'src/core/a.test.ts': text })).toEqual([
      'src/core/a.test.ts:1 core must not import adapters',
    ]);
  });

  test('refuses packages and the platform in core, but not in its tests', () => {
    expect(
      check({
        'src/core/a.ts': "import 'node:fs';\nimport 'zod';",
        'src/core/a.test.ts': "import 'vitest';\nimport '../../test/support/x.ts';",
        'src/hardware/h.ts': "import 'node:fs';",
      }),
    ).toEqual([
      'src/core/a.ts:1 core imports no package and no platform: node:fs',
      'src/core/a.ts:2 core imports no package and no platform: zod',
      'src/hardware/h.ts:1 hardware imports no package and no platform: node:fs',
    ]);
  });

  test('asks for the index of a core folder from outside, types and the folders of core excepted', () => {
    expect(
      check({
        'src/core/queue/index.ts': "export { a } from './a.ts';",
        'src/core/queue/a.ts': '',
        'src/core/request/task.ts': '',
        'src/core/placement/p.ts': "import { a } from '../queue/a.ts';",
        'src/runtime/r.ts':
          "import { a } from '../core/queue/a.ts';\nimport type { A } from '../core/queue/a.ts';\nimport '../core/queue/index.ts';",
        'src/edge/e.ts': "import '../core/request/task.ts';",
      }),
    ).toEqual([
      'src/runtime/r.ts:1 core/queue is entered through its index.ts',
      'src/edge/e.ts:1 core/request has no index.ts: it is not entered from outside',
    ]);
  });

  test('refuses to leave src, to import a test, and a folder that is no layer', () => {
    expect(
      check({
        'src/apps/a.ts': "import '../../engines/common/http.ts';\nimport './b.test.ts';",
        'src/attic/x.ts': '',
      }),
    ).toEqual([
      'src/apps/a.ts:1 src imports nothing outside of src: ../../engines/common/http.ts',
      'src/apps/a.ts:2 a test is imported by what it tests: ./b.test.ts',
      'src/attic/x.ts src/attic is no layer: add it to the check with its direction',
    ]);
  });
});
