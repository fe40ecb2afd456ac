import type { Cluster } from './cluster.ts'
import type { Kubeconfig } from './kubeconfig.ts'
import { KubernetesCluster, type KubernetesOptions } from './kubernetes.ts'
import type { ApiCall } from './transport.ts'

export type FleetOptions = Omit<KubernetesOptions, 'onCall'> & {
  /** Told of every call to a cluster, by its registered name. */
  onCall?: (cluster: string, call: ApiCall) => void
}

type Member = { cluster: KubernetesCluster; context: string; fingerprint: string | undefined }

/**
 * Every cluster we talk to, by its registered name; each is opened when first asked for. A cluster
 * stays the same object when the kubeconfig changes: its calls and follows go on with what the file
 * says now. One whose context the file doesn't hold is unreachable until it does.
 */
export class Fleet {
  readonly #kubeconfig: Kubeconfig
  readonly #options: FleetOptions
  readonly #members = new Map<string, Member>()
  readonly #stop: () => void

  constructor(kubeconfig: Kubeconfig, options: FleetOptions) {
    this.#kubeconfig = kubeconfig
    this.#options = options
    this.#stop = kubeconfig.onChange(() => this.#refresh())
  }

  get({ name, context }: { name: string; context: string }): Cluster {
    const member = this.#members.get(name)
    if (member === undefined) {
      const { onCall, ...options } = this.#options
      const cluster = new KubernetesCluster(name, this.#find(context), {
        ...options,
        onCall: (call) => onCall?.(name, call),
      })
      const { fingerprint } = this.#kubeconfig.context(context) ?? {}
      this.#members.set(name, { cluster, context, fingerprint })
      return cluster
    }
    if (member.context !== context) {
      member.context = context
      this.#update(member)
    }
    return member.cluster
  }

  /** Closes one cluster; asked for again, it is opened anew. */
  async release(name: string): Promise<void> {
    const member = this.#members.get(name)
    this.#members.delete(name)
    await member?.cluster.close()
  }

  async close(): Promise<void> {
    this.#stop()
    const members = [...this.#members.values()]
    this.#members.clear()
    await Promise.all(members.map((member) => member.cluster.close()))
  }

  #refresh(): void {
    for (const member of this.#members.values()) this.#update(member)
  }

  #update(member: Member): void {
    const found = this.#kubeconfig.context(member.context)
    if (found?.fingerprint === member.fingerprint) return
    member.fingerprint = found?.fingerprint
    member.cluster.use(this.#find(member.context))
  }

  #find(context: string) {
    return (
      this.#kubeconfig.context(context) ?? {
        missing: `the kubeconfig has no usable context ${context}`,
      }
    )
  }
}
