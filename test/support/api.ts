import { createClient as createSseClient } from 'graphql-sse'
import { createClient as createWsClient } from 'graphql-ws'
import WebSocket from 'ws'
import { PATIENCE } from './patience.ts'

type Variables = Record<string, unknown>
/** An answer as it came. */
export type Answer = {
  data?: Record<string, unknown> | null
  errors?: { message: string; path?: (string | number)[]; extensions?: { code?: string } }[]
}

/** The API of one project, as its clients use it: over HTTP, SSE and websockets. */
export type Api = {
  url: string
  /** The answer of one operation, errors and all. */
  ask(query: string, variables?: Variables): Promise<Answer>
  /** The one root field of an operation that has to succeed. */
  get<T>(query: string, variables?: Variables): Promise<T>
  /** The results of a subscription until `signal` ends it, as they come. */
  stream<T>(
    query: string,
    variables: Variables,
    options: { over: 'sse' | 'ws'; signal: AbortSignal },
  ): AsyncIterable<T>
  /** Waits until a load balancer's present generation is settled. */
  settled(id: string): Promise<void>
}

/** `project` null: of operators, about all. */
export function apiAt(server: string, project: string | null): Api {
  const url = project === null ? `${server}/graphql` : `${server}/projects/${project}/graphql`
  const ask: Api['ask'] = async (query, variables = {}) => {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/graphql-response+json' },
      body: JSON.stringify({ query, variables }),
    })
    return (await response.json()) as Answer
  }
  const api: Api = {
    url,
    ask,
    async get<T>(query: string, variables: Variables = {}) {
      const { data, errors } = await ask(query, variables)
      if (errors !== undefined) throw new Error(JSON.stringify(errors))
      return Object.values(data ?? {})[0] as T
    },
    async *stream<T>(
      query: string,
      variables: Variables,
      { over, signal }: { over: 'sse' | 'ws'; signal: AbortSignal },
    ) {
      const operation = { query, variables }
      if (over === 'sse') {
        const client = createSseClient({ url, retryAttempts: 0 })
        yield* results<T>(client.iterate(operation), signal, () => client.dispose())
      } else {
        const client = createWsClient({
          url: url.replace(/^http/, 'ws'),
          webSocketImpl: WebSocket,
          retryAttempts: 0,
        })
        yield* results<T>(client.iterate(operation), signal, () => client.dispose())
      }
    },
    async settled(id) {
      const query = `subscription ($id: ID!) { loadBalancerSettled(id: $id) { outcome unmet { type reason message } } }`
      const signal = AbortSignal.timeout(PATIENCE)
      let last: unknown
      for await (const event of api.stream<{ outcome: string }>(
        query,
        { id },
        { over: 'sse', signal },
      )) {
        if (event.outcome === 'SETTLED') return
        last = event
        if (event.outcome !== 'WAITING') break
      }
      throw new Error(`not settled: ${JSON.stringify(last)}`)
    },
  }
  return api
}

async function* results<T>(
  iterator: AsyncIterableIterator<unknown>,
  signal: AbortSignal,
  dispose: () => void,
): AsyncIterable<T> {
  const ended = new Promise<{ done: true; value: undefined }>((resolve) => {
    const end = () => resolve({ done: true, value: undefined })
    if (signal.aborted) end()
    signal.addEventListener('abort', end, { once: true })
  })
  try {
    for (;;) {
      const next = await Promise.race([iterator.next(), ended])
      if (next.done) return
      const { data, errors } = next.value as Answer
      if (errors !== undefined) throw new Error(JSON.stringify(errors))
      yield Object.values(data ?? {})[0] as T
    }
  } finally {
    await Promise.race([
      iterator.return?.(),
      ended,
      new Promise((resolve) => setTimeout(resolve, 100)),
    ])
    dispose()
  }
}
