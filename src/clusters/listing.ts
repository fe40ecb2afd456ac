import type { KubeObject } from '../rules/objects.ts'
import { ApiFailure } from './cluster.ts'
import type { ListPage } from './wire.ts'

/** Reads one page; without a token the first. */
export type ReadPage<T> = (continueToken: string | undefined) => Promise<ListPage<T>>

/** A list so large that it expires while being read, three times over, is a failure like others. */
const ATTEMPTS = 3

/**
 * A whole list as of one resourceVersion. When the server forgets that version between two pages
 * (410), the list begins anew: going on with the fresh token it offers would mix two moments, and
 * objects would seem to vanish. `turn`: waited for before each new beginning.
 */
export async function listAll<T extends KubeObject>(
  readPage: ReadPage<T>,
  turn: () => Promise<void> = async () => undefined,
): Promise<{ items: T[]; resourceVersion: string }> {
  for (let attempt = 1; ; attempt++) {
    try {
      const first = await readPage(undefined)
      const items = first.items
      for (let token = first.continueToken; token !== undefined; ) {
        const page = await readPage(token)
        for (const item of page.items) items.push(item)
        token = page.continueToken
      }
      return { items, resourceVersion: first.resourceVersion }
    } catch (error) {
      if (!isExpired(error) || attempt === ATTEMPTS) throw error
      await turn()
    }
  }
}

/** The server no longer knows the version asked for. */
export function isExpired(error: unknown): boolean {
  return error instanceof ApiFailure && error.code === 410
}
