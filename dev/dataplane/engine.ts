import { parseAddress } from '../../src/ipam/address.ts'
import type { RuleProtocol } from '../../src/rules/objects.ts'

/** One rule as a gateway node would load it. */
export type Load = {
  rule: string
  vpc: string
  protocol: RuleProtocol
  port: number
  /** Canonical. */
  vips: string[]
  /** Canonical addresses. */
  backends: { address: string; port: number }[]
}

export type EngineLimits = {
  servesIPv4: boolean
  /** Rows (VIP, protocol, port) of one gateway node over all tenants; 4,096 in the real one. */
  vipRows: number
  /** Rules of one VPC on one gateway node; 64 in the real one. */
  rulesPerVpc: number
  /** Backends of one rule: what a Maglev table of 1021 slots is given; 64. */
  backends: number
}

/** The forwarding state of one gateway node: the rules it loaded, and those it failed to load. */
export class GatewayEngine {
  readonly #limits: EngineLimits
  readonly #active = new Map<string, Load>()
  readonly #errors = new Map<string, string>()
  readonly #perVpc = new Map<string, number>()
  #rows = 0

  constructor(limits: EngineLimits) {
    this.#limits = limits
  }

  /** What it forwards now. */
  get active(): ReadonlyMap<string, Load> {
    return this.#active
  }

  /** By rule: why it could not be loaded. While there is one, the node says EngineDegraded. */
  get errors(): ReadonlyMap<string, string> {
    return this.#errors
  }

  /**
   * Loads a rule, or says why it can't. What was loaded of the rule before then stays in force, as
   * in the real engine: the table is swapped only when the new one is complete.
   */
  apply(load: Load): string | undefined {
    const error = this.#problem(load)
    if (error === undefined) {
      this.#errors.delete(load.rule)
      this.#unload(load.rule)
      this.#active.set(load.rule, load)
      this.#perVpc.set(load.vpc, (this.#perVpc.get(load.vpc) ?? 0) + 1)
      this.#rows += load.vips.length
    } else {
      this.#errors.set(load.rule, error)
    }
    return error
  }

  /** Forgets a rule. Answers whether there was anything of it. */
  remove(rule: string): boolean {
    const failed = this.#errors.delete(rule)
    return this.#unload(rule) || failed
  }

  #unload(rule: string): boolean {
    const before = this.#active.get(rule)
    if (before === undefined) return false
    this.#active.delete(rule)
    this.#perVpc.set(before.vpc, (this.#perVpc.get(before.vpc) ?? 1) - 1)
    this.#rows -= before.vips.length
    return true
  }

  #problem(load: Load): string | undefined {
    const { servesIPv4, vipRows, rulesPerVpc, backends } = this.#limits
    const before = this.#active.get(load.rule)
    const others = (this.#perVpc.get(load.vpc) ?? 0) - (before?.vpc === load.vpc ? 1 : 0)
    if (others >= rulesPerVpc) return `rule ${load.rule} exceeds its per-tenant quota`
    if (!servesIPv4) {
      const plain = [...load.vips, ...load.backends.map(({ address }) => address)].find(isIPv4)
      if (plain !== undefined) return `${plain}: only IPv6 is translated`
    }
    const keys = load.backends.map(({ address, port }) => `${address}:${port}`)
    if (keys.length === 0) return 'maglev: no backends'
    if (keys.length > backends) return `maglev: more than ${backends} backends`
    const twice = keys.find((key, index) => keys.indexOf(key) !== index)
    if (twice !== undefined) return `maglev: duplicate backend key ${twice}`
    const rows = this.#rows - (before?.vips.length ?? 0) + load.vips.length
    if (rows > vipRows) return `vip table is full: ${vipRows} rows`
    return undefined
  }
}

function isIPv4(address: string): boolean {
  const parsed = parseAddress(address)
  return !('code' in parsed) && parsed.family === 'IPV4'
}
