import { createClient } from 'graphql-ws'
import { expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { useService } from './service.ts'

const PORTAL = 'https://portal.example.com'
const service = useService({ corsOrigins: [PORTAL] })

const open = (path: string, options: { headers?: Record<string, string> } = {}) =>
  new Promise<number>((resolve) => {
    const socket = new WebSocket(
      `ws://127.0.0.1:${service.server.port}${path}`,
      'graphql-transport-ws',
      options,
    )
    socket.on('open', () => {
      resolve(101)
      socket.terminate()
    })
    socket.on('unexpected-response', (_request, response) => resolve(response.statusCode ?? 0))
    socket.on('error', () => undefined)
  })

const closing = (as: string, project: string) =>
  new Promise<number>((resolve) => {
    const client = createClient({
      url: service.url(project).replace('http', 'ws'),
      webSocketImpl: WebSocket,
      connectionParams: { authorization: `Bearer ${as}` },
      retryAttempts: 0,
      lazy: false,
      onNonLazyError: () => undefined,
      on: {
        connected: () => {
          resolve(0)
          void client.dispose()
        },
        closed: (event) => resolve((event as { code: number }).code),
      },
    })
  })

test('queries and mutations are answered too, with errors by the same codes', async () => {
  const client = createClient({
    url: service.url().replace('http', 'ws'),
    webSocketImpl: WebSocket,
    connectionParams: { Authorization: 'Bearer alice' },
  })
  const run = async (query: string) => (await client.iterate({ query }).next()).value
  expect((await run('{ caller { subject } }')).data).toEqual({ caller: { subject: 'alice' } })
  const { errors } = await run('{ loadBalancers(first: 101) { totalCount } }')
  expect(errors).toMatchObject([{ extensions: { code: 'BAD_USER_INPUT' } }])
  await expect(run('{ nothing }')).rejects.toMatchObject([
    { extensions: { code: 'BAD_USER_INPUT' } },
  ])
  await client.dispose()
})

test('who is not known, may not see the project, or names none, is told by the closing code', async () => {
  expect(await closing('alice', 'alpha')).toBe(0)
  expect(await closing('stranger', 'alpha')).toBe(4401)
  expect(await closing('bob', 'alpha')).toBe(4403)
  expect(await closing('alice', 'nowhere')).toBe(4404)
})

test('pages of other origins can not connect', async () => {
  const path = '/projects/alpha/graphql'
  const own = `http://127.0.0.1:${service.server.port}`
  expect(await open(path)).toBe(101)
  expect(await open(path, { headers: { origin: own } })).toBe(101)
  expect(await open(path, { headers: { origin: PORTAL } })).toBe(101)
  expect(await open(path, { headers: { origin: 'https://evil.example.com' } })).toBe(403)
  expect(await open(path, { headers: { origin: 'null' } })).toBe(403)
  expect(await open('/elsewhere')).toBe(404)
})
