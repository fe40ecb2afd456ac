import { describe, expect, test } from 'vitest'
import { filesBelow, importsOf, misplacedImports, textOf } from './support/imports.ts'

describe('imports in src/', () => {
  test('go only down, and between rooms of one floor not at all', () => {
    const files = filesBelow('src').filter((path) => path.endsWith('.ts'))
    expect(files.length).toBeGreaterThan(0)
    expect(files.flatMap((path) => misplacedImports(path, textOf(path)))).toEqual([])
  })
})

describe('the check of imports', () => {
  test.each([
    ['up', 'src/domain/create.ts', "import { server } from '../server/main.ts'"],
    ['across a floor', 'src/rules/render.ts', "import type { Store } from '../db/client.ts'"],
    ['to the demo', 'src/server/main.ts', "import { demo } from '../../dev/main.ts'"],
    ['to a test', 'src/server/main.ts', "import '../../test/support/database.ts'"],
    ['over several lines', 'src/ipam/a.ts', "import {\n  a,\n  type B,\n} from '../domain/a.ts'"],
    ['by passing on', 'src/ipam/a.ts', "export { a } from '../domain/a.ts'"],
    ['while running', 'src/ipam/a.ts', "const a = await import('../domain/a.ts')"],
    ['from no room', 'src/helpers/a.ts', ''],
    ['from outside any room', 'src/main.ts', ''],
  ])('finds one that goes %s', (_, path, text) => {
    expect(misplacedImports(path, text)).toHaveLength(1)
  })

  test.each([
    ['down', 'src/server/main.ts', "import { openStore } from '../db/client.ts'"],
    ['to its own room', 'src/db/client.ts', "import { a } from './generated/client.ts'"],
    ['to a package', 'src/db/client.ts', "import pg from 'pg'"],
  ])('lets one pass that goes %s', (_, path, text) => {
    expect(misplacedImports(path, text)).toEqual([])
  })

  test('reads every form of import, and nothing else', () => {
    const text = [
      "import a from 'a'",
      "import 'b'",
      "import type { C } from 'c'",
      "export * from 'd'",
      "await import('e')",
      "export const f = 'f'",
      "const g = 'g' // import nothing",
    ].join('\n')
    expect(importsOf(text).sort()).toEqual(['a', 'b', 'c', 'd', 'e'])
  })
})
