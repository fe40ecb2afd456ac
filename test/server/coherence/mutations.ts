import type { Chance } from './chance.ts'

/** Half of them are blue at first; each may become what the other half is. */
export const COLOURS = ['blue', 'green']
/** Not more live at a time than the project's quota lets. */
const MOST = 40
const FEWEST = 15

/** Asks the API; answers the one root field. */
export type Ask = <T>(query: string, variables?: Record<string, unknown>) => Promise<T>
type Answer = { __typename: string; loadBalancer?: { id: string }; reservation?: { id: string } }

/** Random changes of one project by the API's mutations. */
export class Mutations {
  readonly #ask: Ask
  readonly #vpc: string
  /** Addresses that a cluster knows: backends of the first load balancer only, as no worker ends what is there. */
  readonly endpoints: readonly string[]
  /** The load balancers that are known to be there; the first one stays, since somebody watches it. */
  readonly live: string[] = []
  readonly #reservations: string[] = []
  /** Who was given a reservation last, as far as is known. */
  readonly #holders = new Map<string | undefined, string | undefined>()
  #made = 0

  constructor(ask: Ask, vpc: string, endpoints: readonly string[]) {
    this.#ask = ask
    this.#vpc = vpc
    this.endpoints = endpoints
  }

  get first(): string {
    return this.live[0] ?? ''
  }

  /** So many of each kind to begin with. */
  async begin(loadBalancers: number, reservations: number): Promise<void> {
    while (this.live.length < loadBalancers) await this.#create()
    while (this.#reservations.length < reservations) await this.#reserve()
  }

  /** One of them, by its name; what is refused was none, and another one is tried. */
  async one(chance: Chance): Promise<string> {
    for (;;) {
      const made = await this.#try(chance)
      if (made !== undefined) return made
    }
  }

  async #try(chance: Chance): Promise<string | undefined> {
    const dice = chance.below(20)
    if (dice === 0) return this.live.length < MOST ? this.#create() : undefined
    if (dice === 1) return this.live.length > FEWEST ? this.#delete(chance) : undefined
    if (dice === 2) return this.#reservations.length < 8 ? this.#reserve() : this.#release(chance)
    const [id, reservation] = [chance.pick(this.live), chance.pick(this.#reservations)]
    const holder = this.#holders.get(reservation) ?? id
    if (dice < 6) {
      const name = `${chance.pick(COLOURS)}-${chance.below(this.#made)}`
      return this.#change('updateLoadBalancer', { id, name })
    }
    if (dice < 8)
      return this.#change('updateLoadBalancer', { id, displayName: `${chance.below(1e9)}` })
    if (dice < 9) {
      return this.#change('updateIPv4Reservation', {
        id: reservation,
        displayName: `${chance.below(1e9)}`,
      })
    }
    if (dice < 16) {
      const [mutation, input] = chance.pick([
        ['bindIPv4Reservation', { reservation, loadBalancer: id }],
        ['unbindIPv4Reservation', { reservation, loadBalancer: holder }],
        ['moveIPv4Reservation', { reservation, from: holder, to: id }],
      ] as const) ?? ['', {}]
      const done = await this.#change(mutation, input)
      if (done !== undefined) this.#holders.set(reservation, id)
      return done
    }
    return this.#backends(chance, dice % 2 === 0 ? this.first : (id ?? ''))
  }

  #backends(chance: Chance, loadBalancer: string): Promise<string | undefined> {
    const among =
      loadBalancer === this.first ? this.endpoints : [1, 2, 3, 4].map((host) => `fd00:9::${host}`)
    const addresses = among.filter(() => chance.below(2) === 0)
    const backends = addresses.map((address) => ({ address }))
    const dice = chance.below(4)
    if (dice === 0) return this.#change('setBackends', { loadBalancer, backends })
    if (dice === 1) return this.#change('addBackends', { loadBalancer, backends })
    if (dice === 2) return this.#change('removeBackends', { loadBalancer, addresses })
    const adminState = chance.pick(['ENABLED', 'STANDBY', 'DISABLED'])
    const changed = backends.map((backend) => ({ ...backend, adminState }))
    return this.#change('updateBackends', { loadBalancer, backends: changed })
  }

  async #create(): Promise<string | undefined> {
    this.#made += 1
    const { loadBalancer, __typename } = await this.#mutate('createLoadBalancer', {
      ...{ name: `${COLOURS[this.#made % 2]}-${this.#made}`, vpc: this.#vpc, region: 'us-east-1' },
      ...{ protocol: { tcp: { port: 80 } }, backends: [{ address: 'fd00:9::1' }] },
    })
    if (loadBalancer === undefined) throw new Error(__typename)
    this.live.push(loadBalancer.id)
    return 'createLoadBalancer'
  }

  async #delete(chance: Chance): Promise<string | undefined> {
    const [id] = this.live.splice(1 + chance.below(this.live.length - 1), 1)
    return this.#change('deleteLoadBalancer', { id })
  }

  async #reserve(): Promise<string | undefined> {
    this.#made += 1
    const input = { name: `held-${this.#made}`, region: 'us-east-1' }
    const { reservation, __typename } = await this.#mutate('createIPv4Reservation', input)
    if (reservation === undefined) throw new Error(__typename)
    this.#reservations.push(reservation.id)
    return 'createIPv4Reservation'
  }

  async #release(chance: Chance): Promise<string | undefined> {
    const place = chance.below(this.#reservations.length)
    const done = await this.#change('deleteIPv4Reservation', { id: this.#reservations[place] })
    if (done !== undefined) this.#reservations.splice(place, 1)
    return done
  }

  /** Its name where it was accepted. */
  async #change(mutation: string, input: Record<string, unknown>): Promise<string | undefined> {
    const { __typename } = await this.#mutate(mutation, input)
    return __typename.endsWith('Payload') ? mutation : undefined
  }

  #mutate(mutation: string, input: Record<string, unknown>): Promise<Answer> {
    const type = `${mutation[0]?.toUpperCase()}${mutation.slice(1)}`
    const shown = {
      createLoadBalancer: '... on CreateLoadBalancerPayload { loadBalancer { id } }',
      createIPv4Reservation: '... on CreateIPv4ReservationPayload { reservation { id } }',
    }
    const fields = Object.entries(shown).find(([name]) => name === mutation)?.[1] ?? ''
    return this.#ask<Answer>(
      `mutation ($input: ${type}Input!) { ${mutation}(input: $input) { __typename ${fields} } }`,
      { input },
    )
  }
}
