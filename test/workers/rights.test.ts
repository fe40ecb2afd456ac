import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parseAllDocuments } from 'yaml'
import type { RunningCluster } from '../../dev/fleet/fleet.ts'
import type { Json } from '../../dev/kube/json.ts'
import { Admin } from '../../dev/kube-real/admin.ts'
import type { RealApiServer } from '../../dev/kube-real/server.ts'
import { ApiFailure, type Cluster } from '../../src/clusters/cluster.ts'
import { Kubeconfig } from '../../src/clusters/kubeconfig.ts'
import { KubernetesCluster } from '../../src/clusters/kubernetes.ts'
import {
  BGP_ADVERTISEMENTS,
  DATA_PLANE_NAMESPACE,
  INSTANCE_LABEL,
  type KubeObject,
  NAMESPACES,
  NETWORK_GATEWAYS,
  NETWORK_RULES,
  type Resource,
  SERVICE_VIP_BINDINGS,
  VPC_ATTACHMENTS,
  VPCS,
  type VpcAttachment,
} from '../../src/rules/objects.ts'
import { accepted, DELETE, type LoadBalancer } from '../api/operations.ts'
import { clusterCalled } from '../api/operators.ts'
import { base64, kubeconfigText } from '../clusters/kubeconfigs.ts'
import { REAL, realClusters } from '../support/clusters.ts'
import { useRealInstallation } from '../support/installation.ts'
import { apply, bound, type Right, rightsOf, tokenOf, without } from './roles.ts'
import { create, createSettled, shown, storedUntil, storeId } from './scene.ts'

const manifests = parseAllDocuments(
  await readFile(new URL('../../deploy/cluster-rbac.yaml', import.meta.url), 'utf8'),
).map((document): Json => document.toJS())
const namespace = DATA_PLANE_NAMESPACE

describe.skipIf(!realClusters)(`with the rights of deploy/cluster-rbac.yaml and ${REAL}`, () => {
  let folder: string
  let admin: Admin
  const installation = useRealInstallation({
    clusters: [{ name: 'us-east-1-a', region: 'us-east-1', servesIPv4: false }],
    limits: { rereadSchema: 500 },
    kubeconfig: async (fleet) => {
      const { server } = fleet.get('us-east-1-a')
      folder = await mkdtemp(join(tmpdir(), 'rights-'))
      admin = new Admin(server)
      for (const manifest of manifests) await apply(admin, manifest)
      const file = join(folder, 'worker')
      const token = await tokenOf(admin)
      const entry = { server: server.url, cluster: authority(server), user: { token } }
      await writeFile(file, kubeconfigText({ 'us-east-1-a': entry }))
      return file
    },
  })
  const running = (): RunningCluster<RealApiServer> => installation.fleet.get('us-east-1-a')
  afterAll(async () => {
    await admin?.close()
    if (folder !== undefined) await rm(folder, { recursive: true })
  })

  test('a worker brings a load balancer to ACTIVE in both dialects, and deletes it', async () => {
    const { api, store } = installation
    const made = await createSettled(installation, installation.addresses('us-east-1-a'))
    await shown(installation, made, ({ status }) => status.phase === 'ACTIVE')
    const [before] = await running().cluster.list(NETWORK_RULES, { namespace })
    await running().upgrade('selector')
    const labelled = `lb.networking.datumapis.com/${storeId(made.id)}`
    await expect
      .poll(
        async () =>
          (await running().cluster.list<VpcAttachment>(VPC_ATTACHMENTS)).filter(
            ({ metadata }) => metadata.labels?.[labelled] === 'serving',
          ).length,
      )
      .toBe(2)
    await expect
      .poll(() => running().cluster.list(NETWORK_RULES, { namespace }))
      .toMatchObject([
        { metadata: { uid: before?.metadata.uid }, spec: { backendSelector: expect.anything() } },
      ])
    // Ours go once the data plane has its own.
    await expect
      .poll(async () =>
        (await running().cluster.list(SERVICE_VIP_BINDINGS, { namespace })).map(
          ({ metadata }) => metadata.labels?.[INSTANCE_LABEL],
        ),
      )
      .toEqual([undefined, undefined])
    await shown(installation, made, ({ status }) => status.phase === 'ACTIVE')
    await accepted(api, DELETE, { id: made.id })
    await storedUntil(
      () => store.prisma.loadBalancer.count(),
      (count) => count === 0,
    )
    expect(await running().cluster.list(NETWORK_RULES, { namespace })).toEqual([])
    await running().upgrade('backends')
  })

  test('the worker did nothing but what the file allows, and was refused nothing', async () => {
    const used = new Set<string>()
    for (const line of (await readFile(running().server.auditLog, 'utf8')).trimEnd().split('\n')) {
      const { user, verb, objectRef, responseStatus }: AuditLine = JSON.parse(line)
      if (user.username !== `system:serviceaccount:${namespace}:network-load-balancers`) continue
      expect(responseStatus.code, `${verb} ${objectRef.resource}`).not.toBe(403)
      used.add(`${verb} ${objectRef.resource}`)
    }
    // A new object's apply is a patch, which needs the right to create besides.
    const allowed = rightsOf(manifests).filter(({ verb }) => verb !== 'create')
    expect([...used].sort()).toEqual(allowed.map(({ name }) => name).sort())
  })

  describe('what is taken away is told, and serves again when it is given back', () => {
    const told = (reason: string) =>
      expect
        .poll(
          async () => (await clusterCalled(installation.operators, 'us-east-1-a')).reachable.reason,
          { timeout: 45_000 },
        )
        .toBe(reason)
    const madeWithout = async (reason: string) => {
      const made = await create(installation, installation.addresses('us-east-1-a'))
      await told(reason)
      const now = await shown(installation, made, (it) => it.status.provisioned.reason === reason)
      expect(now.status.provisioned.status).toBe('FALSE')
      return made
    }
    const servedAgain = async (made: LoadBalancer) => {
      await told('ClusterAnswers')
      await shown(installation, made, ({ status }) => status.phase === 'ACTIVE')
      await accepted(installation.api, DELETE, { id: made.id })
    }

    test('a right to write', async () => {
      const right = rightsOf(manifests).find(({ name }) => name === 'create networkrules')
      for (const manifest of right ? without(manifests, right) : []) await apply(admin, manifest)
      const made = await madeWithout('RightsMissing')
      for (const manifest of manifests) await apply(admin, manifest)
      await servedAgain(made)
    }, 90_000)

    test('a right to see, by a worker that begins', async () => {
      const made = await createSettled(installation, installation.addresses('us-east-1-a'))
      const right = rightsOf(manifests).find(({ name }) => name === 'list networkgateways')
      for (const manifest of right ? without(manifests, right) : []) await apply(admin, manifest)
      await installation.restartWorkers()
      await told('RightsMissing')
      const now = await shown(
        installation,
        made,
        ({ status }) => status.provisioned.reason === 'RightsMissing',
      )
      expect(now.status.provisioned.status).toBe('UNKNOWN')
      for (const manifest of manifests) await apply(admin, manifest)
      await servedAgain(made)
    }, 90_000)

    test('the kind of the rules, with all rules that there are', async () => {
      const settled = await createSettled(installation, installation.addresses('us-east-1-a'))
      const { group, plural } = NETWORK_RULES
      const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
      await admin.call('DELETE', `${definitions}/${plural}.${group}`)
      const made = await madeWithout('SchemaMissing')
      const { reachable } = await clusterCalled(installation.operators, 'us-east-1-a')
      expect(reachable.message).toContain(plural)
      const now = await shown(
        installation,
        settled,
        ({ status }) => status.provisioned.reason === 'SchemaMissing',
      )
      expect(now.status.provisioned.status).not.toBe('TRUE')
      await running().upgrade('backends')
      await servedAgain(made)
      await servedAgain(settled)
    }, 120_000)

    test('the namespace: while it ends, and when it is gone', async () => {
      const path = `/api/v1/namespaces/${namespace}`
      await admin.call('DELETE', path)
      const made = await madeWithout('NamespaceMissing')
      // Nobody here empties it; what would be left of it is done by hand.
      const ended = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } }
      const answer = await admin.call('PUT', `${path}/finalize`, { ...ended, spec: {} })
      expect(answer?.code).toBe(200)
      const more = await madeWithout('NamespaceMissing')
      await apply(admin, ended)
      await servedAgain(made)
      await servedAgain(more)
    }, 120_000)
  })

  describe('each right taken away singly', () => {
    const rights = rightsOf(manifests)
    const clusters = new Map<string, KubernetesCluster>()
    const as = (right: Right | undefined): Cluster => {
      const cluster = clusters.get(right?.name ?? 'everything')
      if (cluster === undefined) throw new Error(`nobody lacks ${right?.name}`)
      return cluster
    }
    beforeAll(async () => {
      const { server } = running()
      const users = [undefined, ...rights].map((right, index) => ({ right, user: `user-${index}` }))
      // All by one certificate, of an administrator who acts as each of them.
      const { clientCertificate, clientKey } = server
      const pair = {
        'client-certificate-data': base64(clientCertificate),
        'client-key-data': base64(clientKey),
      }
      const entries = await Promise.all(
        users.map(async ({ right, user }) => {
          const rest = right === undefined ? manifests : without(manifests, right)
          for (const manifest of bound(rest, user)) await apply(admin, manifest)
          const acting = { ...pair, as: user }
          return [user, { server: server.url, cluster: authority(server), user: acting }] as const
        }),
      )
      const file = join(folder, 'users')
      await writeFile(file, kubeconfigText(Object.fromEntries(entries)))
      const kubeconfig = await Kubeconfig.open(file, { onProblem: raise, pollMs: 0 })
      for (const { right, user } of users) {
        const context = kubeconfig.context(user)
        if (context === undefined) throw new Error(`no context of ${user}`)
        const options = { onHandlerError: raise, connections: 2 }
        clusters.set(right?.name ?? 'everything', new KubernetesCluster(user, context, options))
      }
    })
    afterAll(async () => {
      await Promise.all([...clusters.values()].map((cluster) => cluster.close()))
    })

    test('everything is tried', () => {
      expect(Object.keys(OPERATIONS).sort()).toEqual(rights.map(({ name }) => name).sort())
    })

    test.for(Object.entries(OPERATIONS))(
      'without the right to %s that is refused',
      async ([name, operation]) => {
        const right = rights.find((one) => one.name === name)
        if (right === undefined) throw new Error(`${name} is no right of the file`)
        const run = (cluster: Cluster) => refusalOf(() => operation(cluster, running().cluster))
        // The authorizer learns of roles by and by: what is left works from some moment on …
        await expect.poll(() => run(as(undefined))).toBeUndefined()
        for (const other of OTHERS.filter((one) => !needs(one, name))) {
          await expect
            .poll(() => refusalOf(() => OPERATIONS[other]?.(as(right), running().cluster)))
            .toBeUndefined()
        }
        // … and what was taken away doesn't.
        expect(await run(as(right))).toBe(403)
      },
    )
  })
})

type AuditLine = {
  user: { username: string }
  verb: string
  objectRef: { resource: string }
  responseStatus: { code: number }
}

/** One call for each right, as the worker makes it; `admin` prepares it. */
const OPERATIONS: Record<string, (cluster: Cluster, admin: Cluster) => Promise<unknown>> = {
  ...written(NETWORK_RULES, {
    vpcRef: 'some',
    vpcAttachmentRef: 'some',
    vipAddresses: ['2001:db8:f::1'],
    protocol: 'tcp',
    port: 80,
    backends: [{ address: 'fd99::1', port: 80 }],
  }),
  ...written(SERVICE_VIP_BINDINGS, {
    targetRef: { kind: 'Node', name: 'nowhere' },
    vipAddress: '2001:db8:f::1',
    port: 80,
    protocol: 'tcp',
    backendAddress: 'fd99::1',
    backendPort: 80,
    egressKind: 'veth',
  }),
  ...read(NETWORK_RULES, namespace),
  ...read(SERVICE_VIP_BINDINGS, namespace),
  ...read(NETWORK_GATEWAYS, namespace),
  ...read(BGP_ADVERTISEMENTS, namespace),
  ...read(VPCS),
  ...read(VPC_ATTACHMENTS),
  ...read(NAMESPACES),
  'patch vpcattachments': async (cluster, admin) => {
    const [{ metadata } = { metadata: undefined }] = await admin.list(VPC_ATTACHMENTS)
    if (metadata === undefined) throw new Error('there is no attachment')
    const { name, namespace = '' } = metadata
    await cluster.merge(VPC_ATTACHMENTS, { name, namespace }, { metadata: { labels: { a: 'b' } } })
  },
}

/** Watches take their time each, to be sure. */
const OTHERS = Object.keys(OPERATIONS).filter((name) => !name.startsWith('watch'))

/** Whether an operation needs a right: its own, or to patch what it creates. */
const needs = (operation: string, right: string): boolean =>
  operation === right || operation === right.replace('patch', 'create')

function written(resource: Resource, spec: object): typeof OPERATIONS {
  const { group, version, kind, plural } = resource
  const where = { name: `tried-${plural}`, namespace }
  const object = { apiVersion: `${group}/${version}`, kind, metadata: where, spec }
  let made = 0
  return {
    // Each is a new one: the data plane lets go of the last one when it likes.
    [`create ${plural}`]: (cluster) => {
      made += 1
      const metadata = { ...where, name: `${where.name}-${made}` }
      return cluster.apply(resource, { ...object, metadata })
    },
    [`patch ${plural}`]: async (cluster, admin) => {
      await admin.apply(resource, object)
      await cluster.apply(resource, object)
    },
    [`delete ${plural}`]: async (cluster, admin) => {
      await admin.apply(resource, object)
      await cluster.remove(resource, where)
    },
  }
}

function read(resource: Resource, namespace?: string): typeof OPERATIONS {
  const selection = namespace === undefined ? {} : { namespace }
  return {
    [`list ${resource.plural}`]: (cluster) => cluster.list(resource, selection),
    [`watch ${resource.plural}`]: async (cluster, admin) => {
      // A watch that works tells what changes after the list.
      const objects = await admin.list<KubeObject>(resource, selection)
      const { promise, resolve, reject } = Promise.withResolvers<void>()
      const follow = cluster.follow<KubeObject>(resource, selection, {
        changed: () => undefined,
        failing: (error) => error !== undefined && reject(error),
      })
      await follow.synced
      expect(follow.objects.size).toBe(objects.length)
      // One that is refused is refused at once; one that isn't stays silent.
      const timer = setTimeout(resolve, 300)
      try {
        await promise
      } finally {
        clearTimeout(timer)
        await follow.close()
      }
    },
  }
}

/** The status of the refusal; undefined: it went through. */
async function refusalOf(work: () => Promise<unknown> | undefined): Promise<number | undefined> {
  try {
    await work()
    return undefined
  } catch (error) {
    if (error instanceof ApiFailure) return error.code
    throw error
  }
}

const authority = ({ ca }: { ca: string }) => ({ 'certificate-authority-data': base64(ca) })

function raise(error: unknown): void {
  queueMicrotask(() => {
    throw error
  })
}
