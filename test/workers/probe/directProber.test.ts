import { createServer as createHttpServer, type RequestListener } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { afterEach, describe, expect, test } from 'vitest'
import { DirectProber } from '../../../src/workers/probe/directProber.ts'
import type { HttpQuestion } from '../../../src/workers/probe/prober.ts'
import { Authority } from '../../clusters/certificates.ts'

const prober = new DirectProber()
const { signal } = new AbortController()
const TIMEOUT = 5_000
const QUESTION: HttpQuestion = {
  scheme: 'HTTP',
  host: null,
  path: '/',
  expectedStatuses: [{ from: 200, to: 399 }],
  verifyCertificate: false,
}

const open = new Set<{ server: Server; sockets: Set<Socket> }>()
afterEach(async () => {
  for (const { server, sockets } of open) {
    const closed = new Promise((resolve) => server.close(resolve))
    for (const socket of sockets) socket.destroy()
    await closed
  }
  open.clear()
})

/** The port on which it listens. */
async function listen(server: Server, host = '127.0.0.1'): Promise<number> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.on('error', () => socket.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, host, resolve))
  open.add({ server, sockets })
  return (server.address() as AddressInfo).port
}

/** A port on which nobody listens. */
async function closedPort(host: string): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, host, resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}

const ask = async (
  answer: RequestListener,
  question: Partial<HttpQuestion> = {},
  timeout = TIMEOUT,
) => {
  const port = await listen(createHttpServer(answer))
  const outcome = await prober.http(
    '127.0.0.1',
    port,
    { ...QUESTION, ...question },
    timeout,
    signal,
  )
  return { port, outcome }
}

describe('a TCP probe', () => {
  test.each(['127.0.0.1', '::1'])('succeeds where %s accepts', async (host) => {
    const port = await listen(createServer(), host)
    expect(await prober.connect(host, port, TIMEOUT, signal)).toEqual({ ok: true })
  })

  test.each([
    ['127.0.0.1', '127.0.0.1'],
    ['::1', '[::1]'],
  ])('says that %s refuses, as one writes it', async (host, written) => {
    const port = await closedPort(host)
    expect(await prober.connect(host, port, TIMEOUT, signal)).toEqual({
      ok: false,
      reason: 'Refused',
      message: `connection refused by ${written}:${port}`,
    })
  })

  test('speaks of the address that was asked for, wherever the connection goes', async () => {
    const port = await closedPort('127.0.0.1')
    const mapped = new DirectProber({ locate: async () => ({ host: '127.0.0.1', port }) })
    const nowhere = new DirectProber({ locate: async () => undefined })
    for (const each of [mapped, nowhere]) {
      expect(await each.connect('2001:db8::1', 80, TIMEOUT, signal)).toMatchObject({
        message: 'connection refused by [2001:db8::1]:80',
      })
    }
  })

  test('that is called off says nothing about the backend', async () => {
    const ended = AbortSignal.abort(new RangeError('over'))
    await expect(prober.connect('127.0.0.1', 9, TIMEOUT, ended)).rejects.toThrow(RangeError)
  })
})

describe('an HTTP probe', () => {
  test('asks for the path with the host that was set, and else with the address', async () => {
    const asked: unknown[] = []
    const answer: RequestListener = (request, response) => {
      asked.push([request.method, request.url, request.headers.host])
      response.end()
    }
    const { port } = await ask(answer, { path: '/health?deep=1' })
    await ask(answer, { host: 'app.example' })
    expect(asked).toEqual([
      ['GET', '/health?deep=1', `127.0.0.1:${port}`],
      ['GET', '/', 'app.example'],
    ])
  })

  test.each([
    [200, [{ from: 200, to: 399 }], true],
    [404, [{ from: 200, to: 399 }], false],
    [
      404,
      [
        { from: 200, to: 200 },
        { from: 404, to: 404 },
      ],
      true,
    ],
    [500, [{ from: 200, to: 399 }], false],
  ])(
    'answered with %i, where %j is expected, is good: %s',
    async (status, expectedStatuses, ok) => {
      const { outcome, port } = await ask((_, response) => response.writeHead(status).end('x'), {
        expectedStatuses,
      })
      expect(outcome.ok).toBe(ok)
      if (!outcome.ok) {
        expect(outcome.message).toBe(`127.0.0.1:${port} answered with status ${status}`)
      }
    },
  )

  test('does not follow a redirect', async () => {
    let times = 0
    const { outcome } = await ask((_, response) => {
      times += 1
      response.writeHead(302, { location: '/elsewhere' }).end()
    })
    expect(outcome).toEqual({ ok: true })
    expect(times).toBe(1)
  })

  test('reads no more than it needs of an endless answer', async () => {
    let written = 0
    const { outcome } = await ask((_, response) => {
      const more = () => {
        while (!response.destroyed) {
          written += 16_384
          if (!response.write(Buffer.alloc(16_384))) break
        }
        if (!response.destroyed) response.once('drain', more)
      }
      more()
    })
    expect(outcome).toEqual({ ok: true })
    // What is on its way in the buffers of both ends comes on top.
    expect(written).toBeLessThan(16_000_000)
  })

  test('fails where no answer comes in time, or not all of it', async () => {
    const nothing = await ask(() => undefined, {}, 100)
    expect(nothing.outcome).toEqual({
      ok: false,
      reason: 'TimedOut',
      message: `no answer from 127.0.0.1:${nothing.port} within 0.1 s`,
    })
    const half = await ask((_, response) => response.write('x'), {}, 100)
    expect(half.outcome).toMatchObject({ reason: 'TimedOut' })
  })

  test('fails where the connection is closed instead of an answer, or in the middle of it', async () => {
    const closed = await ask((request) => request.socket.destroy())
    expect(closed.outcome).toMatchObject({ reason: 'Reset' })
    const half = await ask((_, response) => {
      response.writeHead(200, { 'content-length': 10 })
      response.write('x', () => response.socket?.destroy())
    })
    expect(half.outcome).toMatchObject({ reason: 'Reset' })
  })

  test('fails where something else than HTTP is spoken', async () => {
    const port = await listen(createServer((socket) => socket.end('220 mail.example ESMTP\r\n')))
    expect(await prober.http('127.0.0.1', port, QUESTION, TIMEOUT, signal)).toMatchObject({
      reason: 'NotHttp',
      message: `127.0.0.1:${port} does not answer in HTTP`,
    })
  })

  test('that is called off says nothing about the backend', async () => {
    const calling = new AbortController()
    const port = await listen(createHttpServer(() => calling.abort(new RangeError('over'))))
    const asked = prober.http('127.0.0.1', port, QUESTION, TIMEOUT, calling.signal)
    await expect(asked).rejects.toThrow(RangeError)
  })
})

describe('an HTTPS probe', () => {
  let count = 0
  const secure = { ...QUESTION, scheme: 'HTTPS' as const }
  const serve = async (names: { dns?: string[]; ip?: string[] }) => {
    count += 1
    const authority = await Authority.create(`authority ${count}`)
    const { cert, key } = await authority.issue('server', names)
    const asked: unknown[] = []
    const port = await listen(
      createHttpsServer({ cert, key }, (request, response) => {
        asked.push(request.headers.host)
        response.end()
      }),
    )
    const probe = (question: Partial<HttpQuestion>) =>
      prober.http('127.0.0.1', port, { ...secure, ...question }, TIMEOUT, signal)
    return { authority, port, probe }
  }

  test('takes any certificate unless it shall be verified', async () => {
    const { probe, port } = await serve({ dns: ['app.example'] })
    expect(await probe({})).toEqual({ ok: true })
    expect(await probe({ host: 'app.example', verifyCertificate: true })).toMatchObject({
      reason: 'NotTrusted',
      message: expect.stringContaining(`the certificate of 127.0.0.1:${port} is not trusted`),
    })
  })

  test('holds a trusted certificate to the host, or else to the address', async () => {
    const { authority, probe } = await serve({ dns: ['app.example'] })
    const byAddress = await serve({ ip: ['127.0.0.1'] })
    const before = getCACertificates('default')
    setDefaultCACertificates([...before, authority.cert, byAddress.authority.cert])
    try {
      const verifyCertificate = true
      expect(await probe({ verifyCertificate, host: 'app.example' })).toEqual({ ok: true })
      expect(await probe({ verifyCertificate, host: 'app.example:8443' })).toEqual({ ok: true })
      expect(await probe({ verifyCertificate, host: 'other.example' })).toMatchObject({
        reason: 'NotTrusted',
      })
      expect(await probe({ verifyCertificate })).toMatchObject({ reason: 'NotTrusted' })
      expect(await byAddress.probe({ verifyCertificate })).toEqual({ ok: true })
    } finally {
      setDefaultCACertificates(before)
    }
  })

  test('fails where no TLS is spoken', async () => {
    const port = await listen(createHttpServer())
    expect(await prober.http('127.0.0.1', port, secure, TIMEOUT, signal)).toMatchObject({
      reason: 'NotTls',
    })
  })
})
