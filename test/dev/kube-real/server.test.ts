import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type RealApiServer, startRealApiServer } from '../../../dev/kube-real/server.ts'
import { Client, namespaceObject, rule, rulesPath } from '../../conformance/client.ts'
import { ownRealServer, REAL, realClusters, turn } from '../../support/clusters.ts'
import { ownCrds } from '../../support/crds.ts'

const RULES = rulesPath('n')
const RBAC = '/apis/rbac.authorization.k8s.io/v1'

/** A user who may read rules everywhere. */
const reader = { name: 'reader', token: 'reader-token', groups: ['readers'] }

describe.skipIf(!realClusters)(REAL, () => {
  let server: RealApiServer
  let admin: Client
  beforeAll(async () => {
    server = await ownRealServer({ crds: await ownCrds(), users: [reader] })
    admin = new Client(server)
    await admin.call('POST', '/api/v1/namespaces', namespaceObject('n'))
    await admin.apply(`${RULES}/r`, rule('r'))
  })
  afterAll(async () => {
    await admin.close()
    await server.close()
  })

  test('says which version of Kubernetes it is', async () => {
    expect((await admin.get('/version')).body).toMatchObject({
      gitVersion: expect.stringMatching(/^v1\.36\.\d+$/),
      gitTreeState: 'clean',
    })
  })

  test('lets a user do what a role allows, and nothing else', async () => {
    const client = new Client({ ...server, token: reader.token })
    expect((await client.get(RULES)).code).toBe(403)
    const rbac = { apiVersion: 'rbac.authorization.k8s.io/v1', metadata: { name: 'readers' } }
    await admin.call('POST', `${RBAC}/clusterroles`, {
      ...rbac,
      kind: 'ClusterRole',
      rules: [
        { apiGroups: ['network.datumapis.com'], resources: ['networkrules'], verbs: ['list'] },
      ],
    })
    await admin.call('POST', `${RBAC}/clusterrolebindings`, {
      ...rbac,
      kind: 'ClusterRoleBinding',
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'readers' },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: 'readers' }],
    })
    await expect.poll(async () => (await client.get(RULES)).code).toBe(200)
    const refused = await client.apply(`${RULES}/r`, rule('r', { port: 81 }))
    expect([refused.code, refused.body['reason']]).toEqual([403, 'Forbidden'])
    await client.close()
  })

  test('writes down who did what, and when', async () => {
    const lines = (await readFile(server.auditLog, 'utf8')).trimEnd().split('\n')
    const events = lines.map((line): Record<string, unknown> => JSON.parse(line))
    expect(events).toContainEqual(
      expect.objectContaining({
        stage: 'ResponseComplete',
        verb: 'patch',
        user: expect.objectContaining({ username: 'admin' }),
        objectRef: expect.objectContaining({ resource: 'networkrules', name: 'r' }),
        responseStatus: expect.objectContaining({ code: 201 }),
        requestReceivedTimestamp: expect.any(String),
        stageTimestamp: expect.any(String),
      }),
    )
  })
})

describe.skipIf(!realClusters)(`the processes of ${REAL}`, () => {
  let giveBack: (() => void) | undefined
  beforeAll(async () => {
    giveBack = await turn()
  })
  afterAll(() => giveBack?.())

  test('end with the process that started them, also where that is killed', async () => {
    const module = fileURLToPath(new URL('../../../dev/kube-real/server.ts', import.meta.url))
    const script = `
      const { startRealApiServer } = await import(${JSON.stringify(module)})
      const server = await startRealApiServer({ crds: [] })
      console.log(JSON.stringify({ ...server.pids(), log: server.auditLog }))`
    const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const [line]: string[] = await once(createInterface({ input: child.stdout }), 'line')
    const pids: { apiserver: number; etcd: number; log: string } = JSON.parse(line ?? '')
    expect([alive(pids.apiserver), alive(pids.etcd)]).toEqual([true, true])
    child.kill('SIGKILL')
    await expect.poll(() => [alive(pids.apiserver), alive(pids.etcd)]).toEqual([false, false])
    await expect.poll(() => existsSync(dirname(pids.log))).toBe(false)
  })

  test('leave nothing behind when they are closed', async () => {
    const server = await startRealApiServer({ crds: [] })
    const pids = server.pids()
    await server.close()
    expect([alive(pids.apiserver), alive(pids.etcd)]).toEqual([false, false])
    await expect(readFile(server.auditLog)).rejects.toMatchObject({ code: 'ENOENT' })
  })
})

function alive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}
