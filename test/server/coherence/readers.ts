import { setTimeout as delay } from 'node:timers/promises'
import { subscribe, type Transport } from '../streams.ts'

export type Shown = { id: string; displayName: string | null; deletingSince: string | null }
type Event = {
  type: string
  cursor: string
  id: string | null
  loadBalancer?: Shown | null
  event?: { id: string } | null
}

const OBJECT = 'type cursor id loadBalancer { id displayName deletingSince }'
const DOCUMENTS = {
  all: `subscription ($after: LogCursor) { loadBalancers(after: $after) { ${OBJECT} } }`,
  blue: `subscription ($after: LogCursor) {
    loadBalancers(after: $after, filter: { nameContains: "blue" }) { ${OBJECT} } }`,
  green: `subscription ($after: LogCursor) {
    loadBalancers(after: $after, filter: { nameContains: "green" }) { ${OBJECT} } }`,
  one: `subscription ($after: LogCursor, $id: ID!) { loadBalancer(after: $after, id: $id) { ${OBJECT} } }`,
  log: 'subscription ($after: LogCursor) { events(after: $after) { type cursor event { id } } }',
}
export type Watching = keyof typeof DOCUMENTS

type Service = { url: (project?: string) => string; token: string }

/**
 * A client that keeps what a stream tells, leaves now and then, and comes back with a cursor that it
 * was given at any time before. What must never happen goes to `wrong`.
 */
export class Reader {
  readonly watching: Watching
  readonly transport: Transport
  readonly wrong: string[] = []
  /** What it takes to be there: ids with what was seen last; of the log, the ids of events. */
  readonly known = new Map<string, string>()
  connections = 0
  received = 0
  readonly #service: Service
  readonly #variables: Record<string, unknown>
  #cursors: string[]
  /** Of this connection: the version of each object that came last, and every event of the log. */
  #here = new Map<string, number>()
  #resuming = false
  #truth: string | undefined
  #settled = Promise.withResolvers<void>()
  #stream: ReturnType<typeof subscribe<Event>> | undefined

  constructor(
    service: Service,
    watching: Watching,
    transport: Transport,
    { cursor, ...variables }: { cursor?: string; id?: string } = {},
  ) {
    this.#service = service
    this.watching = watching
    this.transport = transport
    this.#variables = variables
    this.#cursors = cursor === undefined ? [] : [cursor]
  }

  /** Goes on until it has come to what `settles` told. */
  async run(): Promise<void> {
    let done = false
    const settled = this.#settled.promise.then(() => {
      done = true
      return this.#stream?.end()
    })
    while (!done) {
      await this.#connect().catch(() => undefined)
      // It was cut off, or left: like every client it comes back after a while.
      await delay(Math.random() * 100)
    }
    await settled
  }

  /** Nothing changes any more: `truth` is what it has to come to, as `view` shows it. */
  settles(truth: string): void {
    this.#truth = truth
    this.#look()
  }

  view(): string {
    return viewOf(this.known)
  }

  async #connect(): Promise<void> {
    const { url, token } = this.#service
    // Mostly one of the last, sometimes any.
    const among = this.#cursors.slice(Math.random() < 0.2 ? 0 : -10)
    const after = among[Math.floor(Math.random() * among.length)] ?? null
    this.#here = new Map()
    this.#resuming = after !== null
    if (after === null) this.known.clear()
    this.connections += 1
    const { transport, watching } = this
    const variables = { ...this.#variables, after }
    const stream = subscribe<Event>({ url }, transport, DOCUMENTS[watching], variables, token)
    this.#stream = stream
    const leaves = 1 + Math.floor(Math.random() * (watching === 'one' ? 6 : 60))
    try {
      for (let taken = 0; taken < leaves || this.#truth !== undefined; taken += 1) {
        const event = await stream.next()
        if (event === undefined) return
        this.#take(event)
        this.#look()
      }
    } finally {
      await stream.end()
    }
  }

  #take({ type, cursor, id, loadBalancer, event }: Event): void {
    this.received += 1
    if (type === 'RESYNC') {
      this.known.clear()
      this.#here.clear()
      this.#cursors = []
      this.#resuming = false
    } else if (event) {
      if (this.#here.has(event.id)) this.wrong.push(`${event.id} came twice`)
      this.#here.set(event.id, 1)
      this.known.set(event.id, '')
    } else if (id !== null) {
      this.#rises(id, loadBalancer ?? null, type)
      if (type === 'ADDED' || type === 'MODIFIED') this.known.set(id, textOf(loadBalancer))
      else this.known.delete(id)
    }
    // Those in the middle of a snapshot are no position yet.
    if (type === 'SYNCED') this.#resuming = true
    if (this.#resuming) this.#cursors.push(cursor)
  }

  #rises(id: string, shown: Shown | null, type: string): void {
    const version = Number(shown?.displayName)
    const before = this.#here.get(id) ?? 0
    // What is being deleted has newer versions than it is called by.
    const again = version === before && shown?.deletingSince == null && type !== 'DELETED'
    if (version < before || (again && type !== 'LEFT'))
      this.wrong.push(`${type} of ${id} at ${version} after ${before}`)
    this.#here.set(id, version)
  }

  #look(): void {
    if (this.#truth !== undefined && this.view() === this.#truth) this.#settled.resolve()
  }
}

export const textOf = (shown: Shown | null | undefined): string => shown?.displayName ?? ''
export const viewOf = (known: Map<string, string>): string =>
  [...known]
    .map(([id, text]) => `${id} ${text}`)
    .toSorted()
    .join('\n')
