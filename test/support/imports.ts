import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

export const root = fileURLToPath(new URL('../../', import.meta.url))

/** Paths of files below a directory of the checkout, relative to the checkout; none if absent. */
export function filesBelow(directory: string): string[] {
  return readdirSync(join(root), { withFileTypes: true }).some((entry) => entry.name === directory)
    ? readdirSync(join(root, directory), { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map((entry) => relative(root, join(entry.parentPath, entry.name)))
        .filter((path) => !path.includes('/generated/'))
        .sort()
    : []
}

export function textOf(path: string): string {
  return readFileSync(join(root, path), 'utf8')
}

// A statement `import … from '…'`, `export … from '…'` or `import '…'`, or a call import('…').
const statement = /^\s*(?:import|export)\b[^'"`;=]*?['"]([^'"\n]+)['"]/gm
const call = /\bimport\(\s*['"]([^'"\n]+)['"]/g

/** What a file imports, as written. */
export function importsOf(text: string): string[] {
  return [...text.matchAll(statement), ...text.matchAll(call)].map(([, target]) => target ?? '')
}

// Each floor's rooms; imports go only to lower floors or stay in the room.
const floors = [
  ['ipam', 'maglev', 'rules', 'db', 'config', 'telemetry'],
  ['domain'],
  ['schema', 'clusters'],
  ['resolvers', 'workers'],
  ['server'],
]

const roomOf = (path: string): string => path.split('/')[1] ?? ''
const floorOf = (path: string): number =>
  floors.findIndex((rooms) => path.startsWith('src/') && rooms.includes(roomOf(path)))

/** What is wrong with where the file at `path` (in src/) stands and what it imports. */
export function misplacedImports(path: string, text: string): string[] {
  if (floorOf(path) === -1) return [`${path} is in no room`]
  return importsOf(text)
    .filter((target) => target.startsWith('.'))
    .map((target) => normalize(join(dirname(path), target)))
    .filter((target) => !(roomOf(target) === roomOf(path) && target.startsWith('src/')))
    .filter((target) => floorOf(target) === -1 || floorOf(target) >= floorOf(path))
    .map((target) => `${path} imports ${target}`)
}
