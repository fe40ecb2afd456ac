import { defineConfig } from 'prisma/config'

const { DATABASE_URL: url, PRISMA_SCHEMA_ENGINE_BINARY: engine } = process.env

// Generating needs no schema engine, yet Prisma downloads one unless it is told of a file that
// exists. Migrations are applied by the same engine as WASM (src/db/migrate.ts).
Object.assign(process.env, { PRISMA_SCHEMA_ENGINE_BINARY: engine ?? process.execPath })

export default defineConfig({
  schema: 'prisma/schema.prisma',
  migrations: { path: 'prisma/migrations' },
  ...(url === undefined ? {} : { datasource: { url } }),
})
