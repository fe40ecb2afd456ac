import { afterAll, afterEach, describe, expect, test } from 'vitest'
import { type EventLog, openEventLog } from '../../src/domain/events/log.ts'
import { EDITOR, permissionIds } from '../../src/server/caller.ts'
import { openSocket } from './protocols/socket.ts'
import { useService } from './service.ts'

/** What must not get out: words of ours, a path, a name in the database. */
const SECRET = 'the secret at /srv/api/src/db/client.ts'

/** What is broken just now. */
let broken: 'resolver' | 'source' | 'identity' | 'scalar' | undefined
let events: EventLog | undefined
const log = (): EventLog => {
  events ??= openEventLog(service.store)
  return events
}
const service = useService({
  identify: () => {
    if (broken === 'identity') throw new Error(SECRET)
    return {
      // As a store might hand on what its type doesn't expect.
      subject: broken === 'scalar' ? JSON.parse(JSON.stringify({ SECRET })) : 'alice',
      email: null,
      actor: { kind: 'USER', name: 'alice' },
      projects: new Map([['alpha', permissionIds(EDITOR)]]),
    }
  },
  log: {
    async head() {
      if (broken === 'resolver') throw new TypeError(SECRET)
      return log().head()
    },
    follow(after, signal, interest) {
      if (broken === 'source') throw new Error(SECRET)
      return log().follow(after, signal, interest)
    },
    hint: () => log().hint(),
    close: () => log().close(),
  },
})
afterAll(() => events?.close())
afterEach(() => {
  broken = undefined
})

type Ways = 'post' | 'get' | 'sse' | 'ws'
const WATCH = 'subscription { loadBalancers { type } }'

/** All that a client gets to see of an operation, as text. */
async function seen(way: Ways, query: string): Promise<string> {
  const url = service.url()
  if (way === 'ws') {
    const socket = await openSocket(url)
    const ended = socket.closed.then((closed) => JSON.stringify(closed))
    const answered = (async () => {
      await socket.init()
      socket.subscribe('1', query)
      const messages: unknown[] = []
      for (let last = ''; last !== 'complete' && last !== 'error'; ) {
        const message = await socket.next()
        messages.push(message)
        last = message.type
      }
      return JSON.stringify(messages)
    })()
    const text = await Promise.race([ended, answered])
    await socket.end()
    return text
  }
  const headers = { authorization: 'Bearer alice', accept: 'application/json' }
  const response =
    way === 'get'
      ? await fetch(`${url}?${new URLSearchParams({ query })}`, { headers })
      : await fetch(url, {
          method: 'POST',
          headers: {
            ...headers,
            'content-type': 'application/json',
            ...(way === 'sse' ? { accept: 'text/event-stream' } : {}),
          },
          body: JSON.stringify({ query }),
        })
  return `${JSON.stringify([...response.headers])} ${await response.text()}`
}

/** Nothing got out but an id, and the log has what happened under it. */
function masked(text: string, happened: string): void {
  for (const leak of [
    SECRET,
    'SECRET',
    '/srv/',
    '.ts',
    ' at ',
    'node_modules',
    'region_gone',
    'SELECT',
  ]) {
    expect(text).not.toContain(leak)
  }
  const [id = 'none'] = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/.exec(text) ?? []
  const lines = service.logged.filter((line) => line.includes(id))
  expect(lines).toHaveLength(1)
  expect(lines[0]).toContain(happened)
}

describe.each(['post', 'get', 'sse', 'ws'] as const)('by %s', (way) => {
  test('a fault in SQL is masked', async () => {
    const { pool } = service.store
    await pool.query('ALTER TABLE region RENAME TO region_gone')
    try {
      masked(await seen(way, '{ regions { id } }'), 'region')
    } finally {
      await pool.query('ALTER TABLE region_gone RENAME TO region')
    }
  })

  test('a fault in a resolver is masked', async () => {
    broken = 'resolver'
    masked(await seen(way, '{ cursor }'), SECRET)
  })

  test('a value that a scalar can not show is masked', async () => {
    broken = 'scalar'
    masked(await seen(way, '{ caller { subject } }'), 'cannot represent')
  })

  test('a fault in recognising who calls is masked', async () => {
    broken = 'identity'
    masked(await seen(way, '{ cursor }'), SECRET)
  })
})

test.each(['sse', 'ws'] as const)('a stream that breaks says so over %s, and ends', async (way) => {
  broken = 'source'
  masked(await seen(way, WATCH), SECRET)
})

test('pages for people bring along what browsers may do with them', async () => {
  const { headers } = await fetch(service.url(), { headers: { accept: 'text/html' } })
  const policy = headers.get('content-security-policy') ?? ''
  for (const rule of [
    "default-src 'none'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ]) {
    expect(policy.split('; ')).toContain(rule)
  }
  expect(policy).not.toMatch(/https?:|\*/)
  expect(Object.fromEntries(headers)).toMatchObject({
    'x-content-type-options': 'nosniff',
    'x-frame-options': 'DENY',
    'referrer-policy': 'no-referrer',
    'cross-origin-opener-policy': 'same-origin',
  })
  expect(headers.get('set-cookie')).toBeNull()
})

test('no answer sets a cookie, and none is taken for a token', async () => {
  const answer = await fetch(service.url(), {
    method: 'POST',
    headers: { 'content-type': 'application/json', cookie: 'authorization=Bearer alice' },
    body: JSON.stringify({ query: '{ cursor }' }),
  })
  expect(answer.headers.get('set-cookie')).toBeNull()
  expect(answer.headers.get('x-content-type-options')).toBe('nosniff')
})
