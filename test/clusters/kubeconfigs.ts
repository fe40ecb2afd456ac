import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { type ClusterContext, Kubeconfig } from '../../src/clusters/kubeconfig.ts'

export type Entry = {
  server: string
  cluster?: Record<string, unknown>
  user?: Record<string, unknown>
  /** The names the file uses; the context's own by default. */
  clusterName?: string
  userName?: string
}

/** The text of a kubeconfig with one context, cluster and user per entry. JSON is YAML. */
export function kubeconfigText(entries: Record<string, Entry>): string {
  const list = Object.entries(entries)
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: list.map(([name, { server, cluster, clusterName = name }]) => ({
      name: clusterName,
      cluster: {
        server,
        ...(server.startsWith('http:') ? { 'insecure-skip-tls-verify': true } : {}),
        ...cluster,
      },
    })),
    users: list
      .filter(([, { user }]) => user !== undefined)
      .map(([name, { user, userName = name }]) => ({ name: userName, user })),
    contexts: list.map(([name, { user, clusterName = name, userName = name }]) => ({
      name,
      context: { cluster: clusterName, ...(user === undefined ? {} : { user: userName }) },
    })),
  })
}

/** An empty folder, removed with the test. */
export async function folder(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'clusters-'))
  onTestFinished(() => rm(path, { recursive: true, force: true }))
  return path
}

/** The one context of a kubeconfig with this entry. */
export async function contextOf(entry: Entry): Promise<ClusterContext> {
  const file = join(await folder(), 'config')
  await writeFile(file, kubeconfigText({ it: entry }))
  const kubeconfig = await Kubeconfig.open(file, { onProblem: fail, pollMs: 0 })
  const context = kubeconfig.context('it')
  if (context === undefined) throw new Error('the context is not there')
  return context
}

export function fail(error: unknown): never {
  throw error
}

export function base64(text: string): string {
  return Buffer.from(text).toString('base64')
}
