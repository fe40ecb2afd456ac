import { LOAD_BALANCER_LABEL, type ServiceVIPBinding } from '../../src/rules/objects.ts'

/** One row of a backend node's translation table, as tests read it. */
export type Row = {
  node: string
  vpc: string
  protocol: string
  /** `ingress`: packets to the VIP's port go to this backend. `egress`: its answers leave as from this VIP. */
  direction: 'ingress' | 'egress'
  vips: string[]
  vipPort: number
  backendAddress: string
  backendPort: number
  /** The binding that registered it last. */
  binding: string
}

export type TableOptions = {
  /**
   * keyed: by node, VPC, protocol and port alone, the later registration silently wins (*backends*
   * dialect). claimed: by address too, the older binding keeps the row (*selector* dialect).
   */
  rows: 'keyed' | 'claimed'
  /** VIPs of one load balancer (IPv4 beside IPv6) share the row of a backend. */
  shared: boolean
}

type Entry = Row & { key: string; sharers: string | undefined; holders: Map<string, string> }

/**
 * The translation rows of all backend nodes of a cluster. A row is keyed too narrowly for several
 * backends of one VPC on one node that serve one port; what happens then is the point of this twin.
 */
export class TranslationTable {
  readonly #options: TableOptions
  readonly #rows = new Map<string, Entry>()

  constructor(options: TableOptions) {
    this.#options = options
  }

  get rows(): Row[] {
    return [...this.#rows.values()].map(({ key: _, sharers: __, holders: ___, ...row }) => row)
  }

  /** Puts in both rows of a binding, or answers the binding that holds one of them (claimed rows only). */
  register(
    binding: ServiceVIPBinding,
    vpc: string,
    vip: string,
    backend: string,
  ): string | undefined {
    const entries = this.#entriesOf(binding, vpc, vip, backend)
    if (this.#options.rows === 'claimed') {
      for (const entry of entries) {
        const held = this.#rows.get(entry.key)
        if (held !== undefined && !this.#mayShare(held, entry)) return held.binding
      }
    }
    for (const entry of entries) {
      const held = this.#rows.get(entry.key)
      if (held !== undefined && this.#mayShare(held, entry)) {
        held.holders.set(entry.binding, vip)
        held.vips = [...new Set(held.holders.values())]
      } else {
        this.#rows.set(entry.key, entry)
      }
    }
    return undefined
  }

  /** Takes out the rows under a binding's keys; keyed rows go even if another binding has them now. */
  unregister(binding: ServiceVIPBinding, vpc: string, vip: string, backend: string): void {
    for (const entry of this.#entriesOf(binding, vpc, vip, backend)) {
      const held = this.#rows.get(entry.key)
      if (held === undefined) continue
      const own = held.holders.delete(entry.binding)
      if (own && held.holders.size > 0) {
        held.vips = [...new Set(held.holders.values())]
        held.binding = [...held.holders.keys()].at(-1) ?? held.binding
      } else if (own || this.#options.rows === 'keyed') {
        this.#rows.delete(entry.key)
      }
    }
  }

  #mayShare(held: Entry, entry: Entry): boolean {
    if (held.holders.has(entry.binding)) return held.backendAddress === entry.backendAddress
    return (
      this.#options.shared &&
      held.sharers !== undefined &&
      held.sharers === entry.sharers &&
      held.backendAddress === entry.backendAddress &&
      held.backendPort === entry.backendPort &&
      held.vipPort === entry.vipPort
    )
  }

  #entriesOf(binding: ServiceVIPBinding, vpc: string, vip: string, backend: string): Entry[] {
    const { targetRef, protocol, port, backendPort = 0 } = binding.spec
    const node = targetRef.name
    const name = binding.metadata.name
    const narrow = [node, vpc, protocol]
    const claimed = this.#options.rows === 'claimed'
    return (['ingress', 'egress'] as const).map((direction) => {
      const own = direction === 'ingress' ? [port] : [backendPort]
      // The real slot is a hash of the backend's address and port; the address stands for it here.
      const wide = !claimed ? [] : direction === 'ingress' ? [vip, backend, backendPort] : [backend]
      return {
        key: [direction, ...narrow, ...own, ...wide].join(' '),
        node,
        vpc,
        protocol,
        direction,
        vips: [vip],
        vipPort: port,
        backendAddress: backend,
        backendPort,
        binding: name,
        sharers: binding.metadata.labels?.[LOAD_BALANCER_LABEL],
        holders: new Map([[name, vip]]),
      }
    })
  }
}
