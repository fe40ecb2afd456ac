import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import type { Pki } from './pki.ts'
import { type Program, startProgram } from './program.ts'

/** Everything that is asked of objects, once, when it has been answered. */
const AUDIT_POLICY = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: None
    users: ['system:apiserver']
  - level: None
    nonResourceURLs: ['*']
  - level: Metadata
`

/** Built-in APIs that nothing here uses cost memory and a second of the start. */
const SERVED = [
  'api/all=false',
  'api/v1=true',
  'admissionregistration.k8s.io/v1=true',
  'apiextensions.k8s.io/v1=true',
  'apiregistration.k8s.io/v1=true',
  'authentication.k8s.io/v1=true',
  'authorization.k8s.io/v1=true',
  'coordination.k8s.io/v1=true',
  'flowcontrol.apiserver.k8s.io/v1=true',
  'networking.k8s.io/v1=true',
  'discovery.k8s.io/v1=true',
  'rbac.authorization.k8s.io/v1=true',
]

/** Starts kube-apiserver on a port of 127.0.0.1; whether it is ready is another question. */
export async function startKubeApiserver(options: {
  binary: string
  folder: string
  etcd: string
  port: number
  pki: Pki
}): Promise<Program> {
  const { folder, pki } = options
  const policy = join(folder, 'audit-policy.yaml')
  await writeFile(policy, AUDIT_POLICY)
  return startProgram({
    file: options.binary,
    folder,
    log: join(folder, 'kube-apiserver.log'),
    args: [
      `--etcd-servers=${options.etcd}`,
      '--bind-address=127.0.0.1',
      '--advertise-address=127.0.0.1',
      `--secure-port=${options.port}`,
      // Nobody looks for API servers in the Endpoints of the Service `kubernetes`.
      '--endpoint-reconciler-type=none',
      '--service-cluster-ip-range=10.0.0.0/24',
      `--tls-cert-file=${pki.files.certificate}`,
      `--tls-private-key-file=${pki.files.key}`,
      `--client-ca-file=${pki.files.ca}`,
      `--token-auth-file=${pki.files.tokens}`,
      '--authorization-mode=RBAC',
      '--service-account-issuer=https://kubernetes.default.svc',
      `--service-account-key-file=${pki.files.verifyingKey}`,
      `--service-account-signing-key-file=${pki.files.signingKey}`,
      '--disable-admission-plugins=ServiceAccount,DefaultIngressClass,DefaultStorageClass,PersistentVolumeClaimResize,Priority,RuntimeClass',
      `--runtime-config=${SERVED.join(',')}`,
      `--audit-policy-file=${policy}`,
      `--audit-log-path=${auditLog(folder)}`,
      // MB; about 700,000 requests.
      ...['--audit-log-maxsize=512', '--audit-log-maxbackup=1'],
      '--event-ttl=10m',
      '--profiling=false',
    ],
  })
}

export const auditLog = (folder: string): string => join(folder, 'audit.log')

/** `port` of 127.0.0.1 if nobody listens there at this moment, for 0 one that is free. */
export function freePort(port = 0): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer()
    probe.once('error', reject)
    probe.listen(port, '127.0.0.1', () => {
      const address = probe.address()
      probe.close(() => {
        if (typeof address === 'object' && address !== null) resolve(address.port)
        else reject(new Error('no TCP port'))
      })
    })
  })
}
