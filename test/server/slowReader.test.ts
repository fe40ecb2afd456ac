import { fork } from 'node:child_process'
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { expect, onTestFinished, test } from 'vitest'
import { updateLoadBalancer } from '../../src/domain/loadBalancers/update.ts'
import { decodeId } from '../../src/schema/ids.ts'
import { openSocket } from './protocols/socket.ts'
import { create, useService } from './service.ts'
import { subscribe, TRANSPORTS, type Transport } from './streams.ts'

const service = useService()
const scope = { project: 'alpha', actor: { kind: 'USER' as const, name: 'bob' } }

/** So that an event has half a megabyte, and the buffers of sockets hold few of them. */
const backends = Array.from({ length: 64 }, (_, index) => ({
  address: `fd00:9::${(index + 1).toString(16)}`,
}))
const BACKEND =
  'id address createdAt health { reason message since } resolved { reason message lastTransitionTime }'
const WATCH = `subscription ($id: ID!) { loadBalancer(id: $id) { type loadBalancer { displayName
  ${Array.from({ length: 20 }, (_, index) => `b${index}: backends(first: 64) { nodes { ${BACKEND} } }`).join(' ')} } } }`
/** Of events that have 50 MB together. */
const CHANGES = 100

type Event = { type: string; loadBalancer: { displayName: string | null } | null }
type Reader = {
  next(): Promise<Event>
  /** Takes nothing more from its socket, as a client that hangs. */
  stop(): void
  goOn(): void
  end(): Promise<void>
}

const readers: Record<Transport, (id: string, url: string) => Promise<Reader>> = {
  async sse(id, url) {
    const asked = request(url, {
      method: 'POST',
      agent: false,
      headers: {
        ...{ authorization: 'Bearer alice', 'content-type': 'application/json' },
        accept: 'text/event-stream',
      },
    })
    asked.end(JSON.stringify({ query: WATCH, variables: { id } }))
    const response = await new Promise<IncomingMessage>((resolve) =>
      asked.once('response', resolve),
    )
    const events = eventsOf(response)
    return {
      async next() {
        const { value } = await events.next()
        return value
      },
      stop: () => void response.socket.pause(),
      goOn: () => void response.socket.resume(),
      async end() {
        asked.destroy()
      },
    }
  },
  async ws(id, url) {
    const { socket, init, subscribe: begin, next, end } = await openSocket(url)
    await init()
    begin('1', WATCH, { id })
    return {
      async next() {
        const { loadBalancer } = Object(Object((await next()).payload).data)
        return loadBalancer
      },
      stop: () => socket.pause(),
      goOn: () => socket.resume(),
      end,
    }
  },
}

async function* eventsOf(response: IncomingMessage): AsyncGenerator<Event, never> {
  let text = ''
  for await (const chunk of response.setEncoding('utf8')) {
    text += chunk
    const messages = text.split('\n\n')
    text = messages.pop() ?? ''
    for (const message of messages) {
      const data = /^data: (.*)$/m.exec(message)?.[1]
      if (data) yield JSON.parse(data).data.loadBalancer
    }
  }
  throw new Error('the stream has ended')
}

/** An API process of its own over the same store, and the bytes that it has in use. */
async function startMeasured() {
  const url = service.store.pool.options.connectionString ?? ''
  const child = fork(new URL('measuredServer.ts', import.meta.url), [url], {
    execArgv: ['--expose-gc'],
  })
  onTestFinished(() => void child.kill())
  const [told] = await once(child, 'message')
  return {
    url: () => `${told.url}/projects/alpha/graphql`,
    async used(): Promise<number> {
      child.send('used?')
      const [{ used }] = await once(child, 'message')
      return used
    },
  }
}

test.each(TRANSPORTS)(
  'over %s, a reader that stops reading costs no memory, is sent what its socket holds and then the latest state; others see all in time',
  async (transport) => {
    const { id } = await create(service, `slow-${transport}`, {
      backends,
      protocol: { udp: { port: transport === 'sse' ? 53 : 54 } },
    })
    const measured = await startMeasured()
    const slow = await readers[transport](id, measured.url())
    while ((await slow.next()).type !== 'SYNCED');
    const watch =
      'subscription ($id: ID!) { loadBalancer(id: $id) { type loadBalancer { displayName } } }'
    const quick = subscribe<Event>(measured, transport, watch, { id })
    while ((await quick.next())?.type !== 'SYNCED');
    const change = async (number: number) => {
      await updateLoadBalancer(service.store, scope, {
        id: decodeId(id)?.uuid ?? '',
        displayName: `${number}`,
      })
      expect((await quick.next())?.loadBalancer?.displayName).toBe(`${number}`)
    }
    await change(0)
    expect((await slow.next()).loadBalancer?.displayName).toBe('0')
    const before = await measured.used()
    slow.stop()
    for (let number = 1; number <= CHANGES; number += 1) await change(number)
    // The bytes of all that it isn't sent would be more, and the objects that they are made of ten times that.
    expect((await measured.used()) - before).toBeLessThan(30e6)
    slow.goOn()
    const received: number[] = []
    while (received.at(-1) !== CHANGES) {
      received.push(Number((await slow.next()).loadBalancer?.displayName))
    }
    expect(received).toEqual(received.toSorted((a, b) => a - b))
    expect(received.length).toBeLessThan(CHANGES / 2)
    await Promise.all([slow.end(), quick.end()])
  },
)
