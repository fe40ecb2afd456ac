/** What the scenes of the register are made of, in one installation. */
import { type NodeType, uuidOf } from '../../../src/schema/ids.ts'
import type { Installation } from '../../support/installation.ts'
import {
  accepted,
  BIND,
  CREATE,
  DELETE,
  inputOf,
  type LoadBalancer,
  RESERVE,
  type Reservation,
} from '../operations.ts'
import { type Told, tell } from '../operators.ts'
import type { Input } from './register.ts'

export const RESOURCE = 'networking.datumapis.com'

/** Objects that every scene may name and none changes. */
export type Shared = {
  loadBalancer: LoadBalancer
  /** Of another project. */
  foreign: { loadBalancer: string; reservation: string }
  reservation: Reservation
  /** Bound to `loadBalancer`. */
  bound: Reservation
  /** In another region than everything else. */
  western: Reservation
  /** As many as one load balancer may have, in the order of their addresses. */
  seven: Reservation[]
}

export class Stock {
  readonly installation: Installation
  #number = 0
  #shared: Shared | undefined

  constructor(installation: Installation) {
    this.installation = installation
  }

  get shared(): Shared {
    if (this.#shared === undefined) throw new Error('the stock is not made yet')
    return this.#shared
  }

  get api() {
    return this.installation.api
  }

  /** Operators' answer, which has to be their payload. */
  async operators(mutation: string, input: Input): Promise<Told> {
    const told = await tell(this.installation.operators, mutation, input)
    if (!told.__typename.endsWith('Payload')) throw new Error(JSON.stringify(told))
    return told
  }

  /** A name, number and port that nothing else has. */
  next(): number {
    this.#number += 1
    return this.#number
  }

  /** With one backend in a cluster of the east. */
  async loadBalancer(input: Input = {}): Promise<LoadBalancer> {
    const { loadBalancer } = await accepted(this.api, CREATE, this.creation(input))
    return loadBalancer
  }

  /** What makes such a load balancer. */
  creation(input: Input = {}): Input {
    const number = this.next()
    const [address] = this.installation.addresses('us-east-1-a')
    return inputOf(this.installation, {
      name: `lb-${number}`,
      protocol: { tcp: { port: 1_000 + number } },
      backends: [{ address, name: 'first' }],
      ...input,
    })
  }

  async reservation(input: Input = {}, api = this.api): Promise<Reservation> {
    const given = { name: `ip-${this.next()}`, region: 'us-east-1', ...input }
    return (await accepted<{ reservation: Reservation }>(api, RESERVE, given)).reservation
  }

  bind(reservation: string, loadBalancer: string): Promise<object> {
    return accepted(this.api, BIND, { reservation, loadBalancer })
  }

  delete(id: string): Promise<object> {
    return accepted(this.api, DELETE, { id })
  }

  async make(): Promise<void> {
    const { installation } = this
    for (const resource of ['loadbalancers', 'ipv4reservations', 'rulespervpc']) {
      await this.limit(resource, null)
    }
    const loadBalancer = await this.loadBalancer()
    const bound = await this.reservation()
    await this.bind(bound.id, loadBalancer.id)
    const foreign = await accepted(
      installation.other,
      CREATE,
      inputOf(installation, { name: 'foreign', vpc: installation.vpc('other') }),
    )
    const seven: Reservation[] = []
    while (seven.length < 7) seven.push(await this.reservation())
    this.#shared = {
      loadBalancer,
      foreign: {
        loadBalancer: foreign.loadBalancer.id,
        reservation: (await this.reservation({}, installation.other)).id,
      },
      reservation: await this.reservation(),
      bound,
      western: await this.reservation({ region: 'us-west-1' }),
      seven,
    }
  }

  /** Sets a quota of the project in the east. */
  limit(resource: string, limit: number | null): Promise<object> {
    const quota = { project: 'demo', resource: `${RESOURCE}/${resource}`, region: 'us-east-1' }
    return this.operators('setQuota', { ...quota, limit })
  }

  /** For what no request can bring about. */
  async sql(text: string, values: unknown[]): Promise<void> {
    await this.installation.store.pool.query(text, values)
  }
}

/** The UUID in the id of an object. */
export function uuidIn(type: NodeType, id: string): string {
  const uuid = uuidOf(type, id)
  if (uuid === null) throw new Error(`no id of a ${type}: ${id}`)
  return uuid
}
