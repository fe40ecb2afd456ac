import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { PrismaPg } from '@prisma/adapter-pg'
import {
  bindMigrationAwareSqlAdapterFactory,
  ColumnTypeEnum,
  DriverAdapterError,
  type SqlDriverAdapter,
  type SqlMigrationAwareDriverAdapterFactory,
} from '@prisma/driver-adapter-utils'
import * as engine from '@prisma/schema-engine-wasm/schema_engine_bg'
import pg from 'pg'

/**
 * Prisma's schema engine as WASM, on one database: the code behind `prisma migrate`, without the
 * program that it would download. `use` gets it; connections are closed afterwards.
 */
export async function withSchemaEngine<T>(
  options: { connectionString: string; schema: { path: string; content: string } },
  use: (engine: engine.SchemaEngine) => Promise<T>,
): Promise<T> {
  await load()
  const pool = new pg.Pool({ connectionString: options.connectionString, max: 2 })
  // The query that a broken connection interrupts fails by itself; idle ones are nobody's loss.
  pool.on('error', () => undefined)
  try {
    const instance = await engine.SchemaEngine.new(
      { datamodels: [[options.schema.path, options.schema.content]] },
      () => undefined,
      bindMigrationAwareSqlAdapterFactory(new EngineAdapter(pool)),
    )
    try {
      return await use(instance)
    } finally {
      instance.free()
    }
  } finally {
    await pool.end()
  }
}

/**
 * Prisma's adapter, but for two things the engine needs. Prisma's cuts scripts at every semicolon,
 * also inside the body of a function; PostgreSQL takes them whole, as one transaction. And the
 * engine reads catalogs, whose type "char" the adapter doesn't know.
 */
class EngineAdapter implements SqlMigrationAwareDriverAdapterFactory {
  readonly provider = 'postgres'
  readonly adapterName: string
  readonly #pool: pg.Pool
  readonly #chars: WeakMap<object, number[]>
  readonly #factory: PrismaPg

  constructor(pool: pg.Pool) {
    this.#pool = pool
    this.#chars = noteChars(pool)
    this.#factory = new PrismaPg(pool)
    this.adapterName = this.#factory.adapterName
  }

  async connect(): Promise<SqlDriverAdapter> {
    const adapter = await this.#factory.connect()
    const queryRaw = adapter.queryRaw.bind(adapter)
    adapter.queryRaw = async (query) => {
      const answer = await queryRaw(query)
      for (const column of this.#chars.get(answer.rows) ?? []) {
        answer.columnTypes[column] = ColumnTypeEnum.Character
      }
      return answer
    }
    adapter.executeScript = async (script) => {
      try {
        await this.#pool.query(script)
      } catch (error) {
        if (!(error instanceof pg.DatabaseError)) throw error
        throw new DriverAdapterError({
          kind: 'postgres',
          code: error.code ?? '',
          severity: error.severity ?? '',
          message: error.message,
          detail: error.detail,
          column: error.column,
          hint: error.hint,
        })
      }
    }
    return adapter
  }

  connectToShadowDb(): Promise<SqlDriverAdapter> {
    return this.#factory.connectToShadowDb()
  }
}

/**
 * Prisma's adapter refuses the catalogs' type "char" (18), in which the kinds of constraints come.
 * Such columns pass it as text (25), and are noted here by the rows they belong to.
 */
function noteChars(pool: pg.Pool): WeakMap<object, number[]> {
  const chars = new WeakMap<object, number[]>()
  const query = pool.query
  const value = async (...args: unknown[]): Promise<unknown> => {
    const result: unknown = await Reflect.apply(query, pool, args)
    if (!(result instanceof pg.Result)) return result
    const columns = result.fields.flatMap((field, at) => (field.dataTypeID === 18 ? [at] : []))
    for (const field of result.fields) if (field.dataTypeID === 18) field.dataTypeID = 25
    chars.set(result.rows, columns)
    return result
  }
  Object.defineProperty(pool, 'query', { value })
  return chars
}

// Node has it; the compiler only knows it from the browser's library.
declare const WebAssembly: {
  instantiate(
    bytes: Uint8Array,
    imports: Record<string, object>,
  ): Promise<{ instance: { exports: { __wbindgen_start(): void } } }>
}

let loaded: Promise<void> | undefined

/** The package is made for bundlers, which import WASM as a module; here it is done by hand. */
function load(): Promise<void> {
  loaded ??= (async () => {
    const glue = createRequire(import.meta.url).resolve(
      '@prisma/schema-engine-wasm/schema_engine_bg',
    )
    const bytes = await readFile(join(dirname(glue), 'schema_engine_bg.wasm'))
    const { instance } = await WebAssembly.instantiate(bytes, { './schema_engine_bg.js': engine })
    engine.__wbg_set_wasm(instance.exports)
    instance.exports.__wbindgen_start()
  })()
  return loaded
}
