import { canonical } from '../rules/addresses.ts'
import { ruleName } from '../rules/names.ts'
import type { Capabilities, Wanted } from '../rules/wanted.ts'

/** One place in the data plane: of all backends for it a node tells apart only one. */
export type Place = { vpc: string; node: string; protocol: string; port: number }

/** What places and rows are taken by in the cluster: `ClusterView`. */
type Standing = {
  /** The binding of another load balancer that stands in a place. */
  bindingAt(place: Place, except: string): string | undefined
  hasRule(name: string): boolean
  /** Rows (one for each VIP of a rule) that the cluster's gateways carry for everybody. */
  rows(): number
}

export const placeKey = ({ vpc, node, protocol, port }: Place): string =>
  `${node} ${protocol} ${port} ${vpc}`

/**
 * What the load balancers of a cluster compete for: places on nodes and rows of gateways. Whoever is
 * being worked claims what it is about to write, so that two that are worked at the same time never
 * both find a place free: the cluster itself would take both.
 */
export class Places {
  readonly #standing: Standing
  readonly #limit: number
  readonly #touch: (loadBalancers: string[]) => void
  /** By place. */
  readonly #claims = new Map<string, string>()
  /** By load balancer: the places that it claims. */
  readonly #claimed = new Map<string, Set<string>>()
  /** By load balancer: the rules that it may be about to write. */
  readonly #rows = new Map<string, Set<string>>()
  /** By place: who waits for it. */
  readonly #waiting = new Map<string, Set<string>>()
  readonly #waitingForRoom = new Set<string>()

  /** `limit`: rows that a gateway holds. `touch`: has load balancers looked at again. */
  constructor(options: {
    standing: Standing
    limit: number
    touch: (loadBalancers: string[]) => void
  }) {
    this.#standing = options.standing
    this.#limit = options.limit
    this.#touch = options.touch
  }

  /** Claims all that is free of what a load balancer wants, and marks what isn't. */
  claim(wanted: Wanted, capabilities: Capabilities): Wanted {
    this.#drop(wanted.loadBalancer)
    if (!wanted.placed) return wanted
    return {
      ...wanted,
      vips: wanted.vips.map((vip) =>
        this.#hasRoom(wanted.loadBalancer, vip.address) ? vip : { ...vip, noRoom: true },
      ),
      backends: wanted.backends.map((backend) => {
        const node = backend.endpoint?.node
        if (capabilities.dialect !== 'backends' || node === undefined || backend.nodeTaken)
          return backend
        if (backend.adminState !== 'ENABLED' || backend.unhealthy) return backend
        const heldBy = this.#take(wanted, node)
        return heldBy === undefined ? backend : { ...backend, nodeHeldBy: heldBy }
      }),
    }
  }

  /** What was claimed is written now, or will not be. */
  release(loadBalancer: string): void {
    const freed = this.#drop(loadBalancer)
    for (const key of freed) this.freed(key)
    this.roomFreed()
  }

  /** Nothing stands in a place any more, or somebody else does. */
  freed(key: string): void {
    const waiting = this.#waiting.get(key)
    this.#waiting.delete(key)
    if (waiting !== undefined) this.#touch([...waiting])
  }

  /** As many as there is room for look again, the longest waiting first. */
  roomFreed(): void {
    if (this.#waitingForRoom.size === 0) return
    const next = [...this.#waitingForRoom].slice(0, Math.max(0, this.#limit - this.#taken()))
    for (const loadBalancer of next) this.#waitingForRoom.delete(loadBalancer)
    this.#touch(next)
  }

  #take({ loadBalancer, vpcRef, protocol, port }: Wanted, node: string): string | undefined {
    const place = { vpc: vpcRef, node, protocol: protocol.toLowerCase(), port }
    const key = placeKey(place)
    const claimant = this.#claims.get(key)
    const holder =
      claimant !== undefined && claimant !== loadBalancer
        ? `a binding of load balancer ${claimant}`
        : this.#standing.bindingAt(place, loadBalancer)
    if (holder === undefined) {
      this.#claims.set(key, loadBalancer)
      this.#claimed.set(loadBalancer, (this.#claimed.get(loadBalancer) ?? new Set()).add(key))
    } else this.#waiting.set(key, (this.#waiting.get(key) ?? new Set()).add(loadBalancer))
    return holder
  }

  #hasRoom(loadBalancer: string, vip: string): boolean {
    const rule = ruleName(loadBalancer, canonical(vip))
    if (this.#standing.hasRule(rule)) return true
    if (this.#isFull()) {
      this.#waitingForRoom.add(loadBalancer)
      return false
    }
    this.#waitingForRoom.delete(loadBalancer)
    this.#rows.set(loadBalancer, (this.#rows.get(loadBalancer) ?? new Set()).add(rule))
    return true
  }

  #isFull(): boolean {
    let most = this.#standing.rows()
    for (const rules of this.#rows.values()) most += rules.size
    // Some of what is claimed may stand by now, and count twice.
    return most >= this.#limit && this.#taken() >= this.#limit
  }

  #taken(): number {
    let taken = this.#standing.rows()
    for (const rules of this.#rows.values())
      for (const rule of rules) if (!this.#standing.hasRule(rule)) taken += 1
    return taken
  }

  /** Answers the places that it had. */
  #drop(loadBalancer: string): string[] {
    this.#rows.delete(loadBalancer)
    const freed = [...(this.#claimed.get(loadBalancer) ?? [])]
    this.#claimed.delete(loadBalancer)
    for (const key of freed) this.#claims.delete(key)
    return freed
  }
}
