import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, inject } from 'vitest'
import { createDatabase, dropDatabase } from '../../dev/postgres.ts'

/**
 * A migrated database of its own for the test file (or the `describe`) that calls this at its top;
 * `url` may be read from `beforeAll` on. It is dropped afterwards, whoever is still connected.
 * `empty`: not migrated.
 */
export function useDatabase(options: { empty?: boolean } = {}): { readonly url: string } {
  const server = inject('postgres')
  const name = `test_${randomUUID()}`
  let url: string | undefined
  beforeAll(async () => {
    url = await createDatabase(server.url, name, options.empty ? undefined : server.template)
  })
  afterAll(() => dropDatabase(server.url, name))
  return {
    get url() {
      if (url === undefined) throw new Error('the database is there from beforeAll on, not before')
      return url
    },
  }
}
