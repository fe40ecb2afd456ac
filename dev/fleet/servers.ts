import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type ApiServer, startApiServer } from '../kube/server.ts'
import { type RealApiServer, startRealApiServer } from '../kube-real/server.ts'

/** What the fleet needs of a cluster's API server, whoever made that. */
export type ClusterServer = Omit<ApiServer, 'storage'>

/** A started API server, and how its CRDs are replaced while it runs. */
export type Started<Server extends ClusterServer> = {
  server: Server
  setCrds(crds: string[]): Promise<void>
}

/** Starts a cluster's API server; `directory` is where its contents survive. */
export type StartServer<Server extends ClusterServer> = (options: {
  name: string
  crds: string[]
  directory: string | undefined
}) => Promise<Started<Server>>

export const startEmbedded: StartServer<ApiServer> = async ({ name, crds, directory }) => {
  const dataFile = directory === undefined ? {} : { dataFile: join(directory, `${name}.json`) }
  const server = await startApiServer({ crds, ...dataFile })
  return {
    server,
    setCrds: async (next) => {
      for (const crd of next) server.storage.setCrd(crd)
    },
  }
}

export const startReal: StartServer<RealApiServer> = async ({ name, crds, directory }) => {
  const dataDir = directory === undefined ? {} : { dataDir: join(directory, `${name}-real`) }
  const server = await startRealApiServer({ crds, ...dataDir })
  return {
    server,
    setCrds: async (next) => {
      await Promise.all(next.map((crd) => server.setCrd(crd)))
    },
  }
}

const crdDirectory = fileURLToPath(new URL('../crds/', import.meta.url))

/** The CRDs of a dialect: all of them, or only what it has otherwise than today's. */
export async function readCrds(subdirectory: '' | 'selector/'): Promise<string[]> {
  const directory = join(crdDirectory, subdirectory)
  const files = (await readdir(directory)).filter((name) => name.endsWith('.yaml')).sort()
  return Promise.all(files.map((name) => readFile(join(directory, name), 'utf8')))
}
