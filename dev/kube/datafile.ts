import { randomUUID } from 'node:crypto'
import { mkdir, open, readFile, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { JsonObject } from './json.ts'
import { isObject } from './json.ts'
import type { Store } from './storage.ts'

/** What a server kept of an earlier run. */
export type Kept = {
  revision: number
  /** By CRD name: the hash of the text it was first given as. */
  given: Record<string, string>
  objects: { table: string; object: JsonObject }[]
}

/** What was kept can't be read. */
export class DataDamaged extends Error {
  override name = 'DataDamaged'
}

function parsed(line: string, where: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    throw new DataDamaged(`${where} is damaged: remove the file, and what was in it is made anew`)
  }
}

/** Reads what was kept; undefined where nothing was. Throws `DataDamaged`. */
export async function readKept(path: string): Promise<Kept | undefined> {
  let text: string
  try {
    text = await readFile(path, 'utf8')
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
  const kept: Kept = { revision: 0, given: {}, objects: [] }
  for (const [index, line] of text.split('\n').entries()) {
    if (line === '') continue
    const entry = parsed(line, `${path}:${index + 1}`)
    if (!isObject(entry)) continue
    const { revision, given, table, object } = entry
    if (typeof revision === 'number') kept.revision = revision
    if (isObject(given)) {
      for (const [name, hash] of Object.entries(given)) kept.given[name] = `${hash}`
    }
    if (typeof table === 'string' && isObject(object)) kept.objects.push({ table, object })
  }
  return kept
}

/** Writes are gathered this long: well under the half second a crash may cost. */
const DEBOUNCE_MS = 250
/** Lines per write, so that other work gets its turn in between. */
const BATCH = 1000

/** Keeps a store's contents in a file: one header line, then one line per object. */
export class DataFile {
  readonly #path: string
  readonly #store: Store
  readonly #given: Record<string, string>
  readonly #failed: (error: Error) => void
  #timer: NodeJS.Timeout | undefined
  #writing: Promise<void> = Promise.resolve()
  #dirty = false

  constructor(parts: {
    path: string
    store: Store
    given: Record<string, string>
    failed: (error: Error) => void
  }) {
    this.#path = parts.path
    this.#store = parts.store
    this.#given = parts.given
    this.#failed = parts.failed
    this.#store.observers.add(() => this.changed())
  }

  /** Something is to be written, soon. */
  changed(): void {
    this.#dirty = true
    this.#timer ??= setTimeout(() => {
      this.flush().catch(this.#failed)
    }, DEBOUNCE_MS)
  }

  /** Writes what isn't written yet, and waits for it. */
  flush(): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#writing = this.#writing.then(() => this.#write())
    return this.#writing
  }

  async #write(): Promise<void> {
    if (!this.#dirty) return
    this.#dirty = false
    const lines = [JSON.stringify({ revision: this.#store.revision, given: this.#given })]
    const versions = [...this.#store.tables.values()].flatMap((table) =>
      [...table.current.values()].map((version) => ({ table: table.id, version })),
    )
    await mkdir(dirname(this.#path), { recursive: true })
    const temporary = `${this.#path}.${randomUUID()}`
    try {
      const file = await open(temporary, 'w', 0o600)
      try {
        await file.write(`${lines.join('\n')}\n`)
        for (let i = 0; i < versions.length; i += BATCH) {
          const batch = versions.slice(i, i + BATCH)
          await file.write(
            batch
              .map(
                (one) =>
                  `{"table":${JSON.stringify(one.table)},"object":${one.version.storedJson}}\n`,
              )
              .join(''),
          )
        }
        await file.sync()
      } finally {
        await file.close()
      }
      await rename(temporary, this.#path)
    } catch (error) {
      this.#dirty = true
      await rm(temporary, { force: true })
      throw error
    }
  }
}
