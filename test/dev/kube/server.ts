import type { ApiServer, ApiServerOptions } from '../../../dev/kube/server.ts'
import { startApiServer } from '../../../dev/kube/server.ts'
import { Client, namespaceObject, rulesPath } from '../../conformance/client.ts'
import { ownCrds } from '../../support/crds.ts'

/** Rules of the data plane's namespace. */
export const RULES = rulesPath('galactic-system')

/** A client and the server that it talks to, which closes with it. */
export class Embedded extends Client {
  readonly server: ApiServer

  constructor(server: ApiServer) {
    super(server)
    this.server = server
  }

  override async close(): Promise<void> {
    await this.server.close()
    await super.close()
  }
}

/** Starts a server with our CRDs and the data plane's namespace. */
export async function startEmbedded(options: Partial<ApiServerOptions> = {}): Promise<Embedded> {
  const client = new Embedded(await startApiServer({ crds: await ownCrds(), ...options }))
  await client.call('POST', '/api/v1/namespaces', namespaceObject('galactic-system'))
  return client
}
