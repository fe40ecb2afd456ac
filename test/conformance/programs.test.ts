import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { isObject } from '../../dev/kube/json.ts'
import { KubernetesCluster } from '../../src/clusters/kubernetes.ts'
import { NETWORK_RULES } from '../../src/rules/objects.ts'
import { base64, contextOf, fail, folder } from '../clusters/kubeconfigs.ts'
import { Plugin } from '../clusters/plugin.ts'
import type { SharedServer } from '../support/cluster-broker.ts'
import { REAL, realClusters, sharedRealServer } from '../support/clusters.ts'
import { Client, namespaceObject } from './client.ts'

const RBAC = 'rbac.authorization.k8s.io'
const namespace = `c-${randomUUID().slice(0, 8)}`
const core = `/api/v1/namespaces/${namespace}`
const ACCOUNTS = ['first', 'second', 'third']

describe.skipIf(!realClusters)(`a user whose credentials come from a program, and ${REAL}`, () => {
  let server: SharedServer
  let admin: Client
  const created = async (path: string, object: object) => {
    const answer = await admin.call('POST', path, object)
    expect(answer.code, answer.text).toBe(201)
    return answer.body
  }
  /** A token of a service account: it is refused once the account is gone. */
  const tokenOf = async (account: string): Promise<string> => {
    const request = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} }
    const { status } = await created(`${core}/serviceaccounts/${account}/token`, request)
    return isObject(status) ? String(status['token']) : ''
  }
  /** Who called in our namespace, in order; each once in a row. */
  const callers = async () => {
    const log = (await readFile(server.auditLog, 'utf8')).trimEnd().split('\n')
    const users = log
      .map((line): AuditLine => JSON.parse(line))
      .filter(({ verb, objectRef }) => verb === 'list' && objectRef?.namespace === namespace)
      .filter(({ responseStatus }) => responseStatus.code === 200)
      .map(({ user }) => user.username.split(':').at(-1) ?? '')
    return users.filter((user, index) => user !== users[index - 1])
  }
  beforeAll(async () => {
    server = await sharedRealServer()
    admin = new Client(server)
    await created('/api/v1/namespaces', namespaceObject(namespace))
    for (const name of ACCOUNTS) {
      const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name } }
      await created(`${core}/serviceaccounts`, account)
    }
    const rbac = { apiVersion: `${RBAC}/v1`, metadata: { name: 'readers' } }
    const within = `/apis/${RBAC}/v1/namespaces/${namespace}`
    await created(`${within}/roles`, {
      ...rbac,
      kind: 'Role',
      rules: [{ apiGroups: [NETWORK_RULES.group], resources: ['networkrules'], verbs: ['list'] }],
    })
    await created(`${within}/rolebindings`, {
      ...rbac,
      kind: 'RoleBinding',
      roleRef: { apiGroup: RBAC, kind: 'Role', name: 'readers' },
      subjects: ACCOUNTS.map((name) => ({ kind: 'ServiceAccount', name, namespace })),
    })
  })
  afterAll(() => admin?.close())

  test('goes on under its next one when the last one expires, and when the server takes it no more', async () => {
    const [first = '', second = '', third = ''] = await Promise.all(ACCOUNTS.map(tokenOf))
    const plugin = await Plugin.create(await folder(), {
      token: first,
      expires: Date.now() + 2_000,
    })
    const context = await contextOf({
      server: server.url,
      cluster: { 'certificate-authority-data': base64(server.ca) },
      user: plugin.user,
    })
    const cluster = new KubernetesCluster('it', context, { onHandlerError: fail })
    onTestFinished(() => cluster.close())
    const list = () => cluster.list(NETWORK_RULES, { namespace })
    // The authorizer learns of roles by and by.
    await expect.poll(async () => (await asked(server, second)).code).toBe(200)
    await list()
    await plugin.hand({ token: second, expires: Date.now() + 3_600_000 })
    await expect
      .poll(async () => {
        await list()
        return plugin.runs()
      })
      .toBe(2)
    await list()

    await plugin.hand({ token: third, expires: Date.now() + 3_600_000 })
    await admin.call('DELETE', `${core}/serviceaccounts/second`)
    // The server itself remembers tokens for ten seconds.
    await expect.poll(async () => (await asked(server, second)).code, { timeout: 60_000 }).toBe(401)
    await Promise.all(Array.from({ length: 20 }, list))
    expect(await plugin.runs()).toBe(3)
    await expect.poll(callers).toEqual(['second', 'first', 'second', 'third'])
  })
})

/** One list by a token, without the product's client. */
async function asked(server: SharedServer, token: string): Promise<{ code: number }> {
  const client = new Client({ ...server, token })
  try {
    const { group, version, plural } = NETWORK_RULES
    return await client.get(`/apis/${group}/${version}/namespaces/${namespace}/${plural}`)
  } finally {
    await client.close()
  }
}

type AuditLine = {
  user: { username: string }
  verb: string
  objectRef?: { namespace?: string }
  responseStatus: { code: number }
}
