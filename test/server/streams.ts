import { createClient as createSse } from 'graphql-sse'
import { createClient as createWs } from 'graphql-ws'
import { WebSocket } from 'ws'
import type { Service } from './service.ts'

export type Transport = 'sse' | 'ws'
export const TRANSPORTS: Transport[] = ['sse', 'ws']

/** One subscription through a client of the transport; `next` awaits the next event of the root field. */
export function subscribe<T = Record<string, unknown>>(
  service: Pick<Service, 'url'>,
  transport: Transport,
  query: string,
  variables: Record<string, unknown> = {},
  as = 'alice',
  project = 'alpha',
) {
  const url = service.url(project)
  const client =
    transport === 'sse'
      ? createSse({ url, headers: { authorization: `Bearer ${as}` }, retryAttempts: 0 })
      : createWs({
          url: url.replace('http', 'ws'),
          webSocketImpl: WebSocket,
          connectionParams: { authorization: `Bearer ${as}` },
          retryAttempts: 0,
        })
  const results = client.iterate<Record<string, T>>({ query, variables })
  return {
    /** undefined: the stream has ended. */
    async next(): Promise<T | undefined> {
      const { value, done } = await results.next()
      if (done) return undefined
      if (value.errors) throw new Error(JSON.stringify(value.errors))
      const [event] = Object.values(value.data ?? {})
      return event
    },
    async end(): Promise<void> {
      await results.return?.(undefined)
      await client.dispose()
    },
  }
}
