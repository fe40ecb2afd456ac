import { setTimeout as delay } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { subscribe, type Transport } from '../streams.ts'
import type { Chance } from './chance.ts'

type Event = {
  type?: string
  cursor?: string
  id?: string | null
  loadBalancer?: Shown | null
  backend?: Shown | null
  reservation?: Shown | null
  event?: { id: string } | null
  outcome?: string
  generation?: number
}
/** Whatever was selected of an object. */
export type Shown = {
  id: string
  /** These never fall, where they are shown. */
  generation?: number
  health?: { since: string }
}

/** Of every object what tells its versions from each other, so that none may be told twice. */
export const LOAD_BALANCER =
  'id generation name deletingSince backends(first: 9) { nodes { id health { since } } }'
export const BACKEND = `id name adminState serving health { state reason message since }
  resolved { status reason message }`
export const RESERVATION = `id generation displayName state bindings { state loadBalancer { id }
  effective { status reason message observedGeneration } }`

const list = (filter: string) => `subscription ($after: LogCursor) {
  loadBalancers(after: $after, filter: ${filter}) { type cursor id loadBalancer { ${LOAD_BALANCER} } } }`
const reserved = (filter: string) => `subscription ($after: LogCursor) {
  ipv4Reservations(after: $after, filter: ${filter}) { type cursor id reservation { ${RESERVATION} } } }`
const DOCUMENTS = {
  all: list('null'),
  blue: list('{ nameContains: "blue" }'),
  green: list('{ nameContains: "green" }'),
  one: `subscription ($after: LogCursor, $id: ID!) {
    loadBalancer(after: $after, id: $id) { type cursor id loadBalancer { ${LOAD_BALANCER} } } }`,
  health: `subscription ($after: LogCursor, $id: ID!) {
    backendHealth(after: $after, loadBalancer: $id) { type cursor id backend { ${BACKEND} } } }`,
  reservations: reserved('null'),
  bound: reserved('{ bound: true }'),
  log: 'subscription ($after: LogCursor) { events(after: $after) { type cursor event { id } } }',
  settled: `subscription ($id: ID!) {
    loadBalancerSettled(id: $id, timeoutSeconds: 120) { outcome generation } }`,
}
export type Watching = keyof typeof DOCUMENTS
export const WATCHING = Object.keys(DOCUMENTS) as Watching[]
/** Of these many events come. */
const BUSY: Watching[] = ['all', 'blue', 'green', 'log']

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
  readonly #chance: Chance
  readonly #variables: Record<string, unknown>
  #cursors: string[]
  /** Of this connection: how each object came last, and every event of the log. */
  #here = new Map<string, Shown>()
  #resuming = false
  #truth: string | undefined
  #settled = Promise.withResolvers<void>()
  #stream: ReturnType<typeof subscribe<Event>> | undefined

  constructor(
    service: Service,
    watching: Watching,
    transport: Transport,
    chance: Chance,
    { cursor, ...variables }: { cursor?: string; id?: string } = {},
  ) {
    this.#service = service
    this.watching = watching
    this.transport = transport
    this.#chance = chance.of(`reader of ${watching} over ${transport}`)
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
      await delay(this.#chance.below(100))
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
    const among = this.#cursors.slice(this.#chance.next() < 0.2 ? 0 : -10)
    const after = this.#chance.pick(among) ?? null
    this.#here = new Map()
    this.#resuming = after !== null
    if (after === null) this.known.clear()
    this.connections += 1
    const { transport, watching } = this
    const variables = { ...this.#variables, after }
    const stream = subscribe<Event>({ url }, transport, DOCUMENTS[watching], variables, token)
    this.#stream = stream
    const leaves = 1 + this.#chance.below(BUSY.includes(watching) ? 60 : 6)
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

  #take({ type = '', cursor = '', id = null, event, ...told }: Event): void {
    this.received += 1
    const shown = told.loadBalancer ?? told.backend ?? told.reservation
    if (told.outcome !== undefined) {
      this.#rises({ id: 'settled', generation: told.generation ?? 0 })
      this.known.set('settled', settledOf(told.outcome, told.generation))
    } else if (type === 'RESYNC') {
      this.known.clear()
      this.#here.clear()
      this.#cursors = []
      this.#resuming = false
    } else if (event) {
      if (this.#here.has(event.id)) this.wrong.push(`${event.id} came twice`)
      this.#here.set(event.id, event)
      this.known.set(event.id, '')
    } else if (id !== null) {
      if (shown) {
        if (type !== 'LEFT' && type !== 'DELETED' && isDeepStrictEqual(this.#here.get(id), shown))
          this.wrong.push(`${type} of ${textOf(shown)} came twice`)
        this.#rises(shown)
      }
      if (type === 'ADDED' || type === 'MODIFIED') this.known.set(id, textOf(shown))
      else this.known.delete(id)
    }
    // Those in the middle of a snapshot are no position yet.
    if (type === 'SYNCED') this.#resuming = true
    if (this.#resuming) this.#cursors.push(cursor)
  }

  #rises(shown: Shown): void {
    const before = this.#here.get(shown.id)
    const fell =
      (shown.generation ?? 0) < (before?.generation ?? 0) ||
      (shown.health?.since ?? '') < (before?.health?.since ?? '')
    if (fell) this.wrong.push(`${textOf(shown)} after ${textOf(before)}`)
    this.#here.set(shown.id, shown)
  }

  #look(): void {
    if (this.#truth !== undefined && this.view() === this.#truth) this.#settled.resolve()
  }
}

export const textOf = (shown: Shown | null | undefined): string => JSON.stringify(shown ?? null)
export const settledOf = (outcome: string, generation = 0): string => `${outcome} of ${generation}`
export const viewOf = (known: Map<string, string>): string =>
  [...known]
    .map(([id, text]) => `${id} ${text}`)
    .toSorted()
    .join('\n')
