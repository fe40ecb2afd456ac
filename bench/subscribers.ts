import { request } from 'node:http'
import type { Socket } from 'node:net'
import { WebSocket } from 'ws'

/** Many who listen at once: waits until a text has come to all of them. */
export class Subscribers {
  #awaited: { text: string; missing: Set<number>; came: () => void } | undefined
  /** What came last to each: a text may be cut in two. */
  readonly #ends: string[] = []
  readonly #closers: (() => void)[] = []
  #connecting = 0

  /** Resolves when the text has come to all, to each at least once from now on. */
  async all(text: string): Promise<void> {
    await new Promise<void>((resolve) => {
      const missing = new Set(this.#closers.keys())
      this.#awaited = { text, missing, came: resolve }
    })
    this.#awaited = undefined
  }

  /** Connects so many by server-sent events, or to whatever else answers one POST without an end. */
  async bySse(count: number, url: string, body: string): Promise<void> {
    await this.#inGroups(count, async (index) => {
      const headers = { 'content-type': 'application/json', accept: 'text/event-stream' }
      const sent = request(url, { method: 'POST', agent: false, headers })
      sent.end(body)
      const socket = await new Promise<Socket>((resolve, reject) => {
        sent.once('error', reject)
        sent.once('response', (response) => {
          response.setEncoding('latin1')
          response.on('data', (text: string) => this.#heard(index, text))
          response.on('error', () => undefined)
          resolve(response.socket)
        })
      })
      this.#closers[index] = () => socket.destroy()
    })
  }

  /** Connects so many by graphql-ws. */
  async byWebsocket(count: number, url: string, payload: object): Promise<void> {
    await this.#inGroups(count, async (index) => {
      const socket = new WebSocket(url.replace('http', 'ws'), 'graphql-transport-ws')
      await new Promise<void>((resolve, reject) => {
        socket.once('error', reject)
        socket.once('open', () => socket.send('{"type":"connection_init"}'))
        socket.on('message', (data: Buffer) => {
          const text = data.toString('latin1')
          if (text.includes('"connection_ack"')) {
            socket.send(JSON.stringify({ id: '1', type: 'subscribe', payload }))
            resolve()
          } else {
            this.#heard(index, text)
          }
        })
      })
      this.#closers[index] = () => socket.terminate()
    })
  }

  close(): void {
    for (const close of this.#closers) close()
  }

  #heard(index: number, text: string): void {
    const awaited = this.#awaited
    const heard = `${this.#ends[index] ?? ''}${text}`
    this.#ends[index] = heard.slice(-64)
    if (!awaited?.missing.has(index) || !heard.includes(awaited.text)) return
    awaited.missing.delete(index)
    if (awaited.missing.size === 0) awaited.came()
  }

  async #inGroups(count: number, connect: (index: number) => Promise<void>): Promise<void> {
    const last = this.#connecting + count
    await Promise.all(
      Array.from({ length: 32 }, async () => {
        while (this.#connecting < last) {
          const index = this.#connecting
          this.#connecting += 1
          await connect(index)
        }
      }),
    )
  }
}
