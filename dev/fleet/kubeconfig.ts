import { rename, writeFile } from 'node:fs/promises'
import { stringify } from 'yaml'
import type { ApiServer } from '../kube/server.ts'

/**
 * Writes a kubeconfig with one context for each API server, all named alike. It holds tokens, so
 * nobody else may read it; whoever reads it meanwhile sees the old one or the new one.
 */
export async function writeKubeconfig(
  file: string,
  servers: ReadonlyMap<string, Pick<ApiServer, 'url' | 'ca' | 'token'>>,
): Promise<void> {
  const all = [...servers]
  const text = stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: all.map(([name, { url, ca }]) => ({
      name,
      cluster: {
        server: url,
        'certificate-authority-data': Buffer.from(ca).toString('base64'),
      },
    })),
    users: all.map(([name, { token }]) => ({ name, user: { token } })),
    contexts: all.map(([name]) => ({ name, context: { cluster: name, user: name } })),
    'current-context': all[0]?.[0] ?? '',
  })
  const aside = `${file}.${process.pid}`
  await writeFile(aside, text, { mode: 0o600 })
  await rename(aside, file)
}
