import { failureOfAnswer } from '../../src/clusters/failure.ts'
import type { ClusterContext } from '../../src/clusters/kubeconfig.ts'
import { type ApiRequest, Transport } from '../../src/clusters/transport.ts'
import { apiVersionOf, objectFromText } from '../../src/clusters/wire.ts'
import type { KubeObject, Resource } from '../../src/rules/objects.ts'

/** An object that is about to be made: its kind is told by the resource. */
export type Draft = {
  metadata: Partial<KubeObject['metadata']> & { name: string }
  spec?: object
}

export type Where = { name: string; namespace?: string | undefined }

/**
 * Writes as other controllers of a cluster do: plain creates, merge patches, and statuses, under a
 * field manager that isn't ours. Patches that carry `metadata.resourceVersion` are refused (409)
 * when the object has changed since.
 */
export class Writer {
  readonly #manager: string
  readonly #transport: Transport

  constructor(context: ClusterContext, manager: string) {
    this.#manager = manager
    this.#transport = new Transport(context)
  }

  create<T extends KubeObject>(resource: Resource, draft: Draft): Promise<T> {
    const body = { apiVersion: apiVersionOf(resource), kind: resource.kind, ...draft }
    return this.#send({
      method: 'POST',
      path: this.#path(resource, draft.metadata.namespace),
      contentType: 'application/json',
      body: JSON.stringify(body),
    })
  }

  patch<T extends KubeObject>(resource: Resource, where: Where, patch: object): Promise<T> {
    return this.#merge(resource, where, '', patch)
  }

  patchStatus<T extends KubeObject>(resource: Resource, where: Where, patch: object): Promise<T> {
    return this.#merge(resource, where, '/status', patch)
  }

  /** What isn't there is gone already. */
  async remove(resource: Resource, where: Where): Promise<void> {
    const path = this.#path(resource, where.namespace, where.name)
    const answer = await this.#transport.call({ method: 'DELETE', path })
    if (answer.status > 299 && answer.status !== 404) throw failureOfAnswer(answer)
  }

  close(): Promise<void> {
    return this.#transport.close()
  }

  #merge<T extends KubeObject>(
    resource: Resource,
    { name, namespace }: Where,
    subresource: string,
    patch: object,
  ): Promise<T> {
    return this.#send({
      method: 'PATCH',
      path: this.#path(resource, namespace, `${name}${subresource}`),
      contentType: 'application/merge-patch+json',
      body: JSON.stringify(patch),
    })
  }

  async #send<T extends KubeObject>(request: ApiRequest): Promise<T> {
    const answer = await this.#transport.call(request)
    if (answer.status > 299) throw failureOfAnswer(answer)
    return objectFromText<T>(answer.text)
  }

  #path(
    { group, version, plural }: Resource,
    namespace: string | undefined,
    rest?: string,
  ): string {
    const root = group === '' ? `/api/${version}` : `/apis/${group}/${version}`
    const place = namespace === undefined ? '' : `/namespaces/${namespace}`
    const name = rest === undefined ? '' : `/${rest}`
    return `${root}${place}/${plural}${name}?fieldManager=${this.#manager}`
  }
}
