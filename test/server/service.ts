import { pino } from 'pino'
import { afterAll, beforeAll } from 'vitest'
import { openStore, type Store } from '../../src/db/client.ts'
import { recordEndpoints, recordVpcs } from '../../src/domain/inventory.ts'
import { registerCluster } from '../../src/domain/operators/clusters.ts'
import { createAddressPool } from '../../src/domain/operators/pools.ts'
import { setProjectRelease } from '../../src/domain/operators/projects.ts'
import { createRegion } from '../../src/domain/operators/regions.ts'
import type { Permission } from '../../src/schema/context.ts'
import { globalId } from '../../src/schema/ids.ts'
import { type Caller, EDITOR, type Identify, permissionIds } from '../../src/server/caller.ts'
import { type RunningServer, type ServerOptions, startServer } from '../../src/server/server.ts'
import { useDatabase } from '../support/database.ts'

export type Answer = {
  status: number
  headers: Headers
  body: Body
}
/** What GraphQL answers; text that isn't JSON is an answer without either. */
export type Body = {
  data?: Record<string, unknown> | null
  errors?: {
    message: string
    extensions: { code: string; requestId?: string; limit?: string }
  }[]
  extensions?: { cost?: { requested: number; available: number } }
}

const editor = permissionIds(EDITOR)
const reading: Permission[] = ['loadbalancers.get', 'loadbalancers.list']

const caller = (name: string, projects: Record<string, ReadonlySet<string>>): Caller => ({
  subject: name,
  email: `${name}@example.com`,
  actor: { kind: 'USER', name: `${name}@example.com` },
  projects: new Map(Object.entries(projects)),
})

/** `Bearer alice` and so on; nobody else is known. */
const CALLERS: Record<string, Caller> = {
  alice: caller('alice', { alpha: editor, nowhere: editor }),
  bob: caller('bob', { beta: editor }),
  reader: caller('reader', { alpha: permissionIds(reading) }),
}
const identify: Identify = ({ headers }) =>
  CALLERS[(headers.authorization ?? '').replace('Bearer ', '')] ?? null

/**
 * A running API over a database of its own, with projects `alpha` and `beta`, one region and a VPC
 * with four endpoints for each. There are no workers: nothing ever comes into effect by itself.
 */
export function useService(options: Partial<Omit<ServerOptions, 'store'>> = {}) {
  const database = useDatabase()
  let store: Store | undefined
  let server: RunningServer | undefined
  const logged: string[] = []
  beforeAll(async () => {
    store = openStore({ connectionString: database.url })
    await fill(store)
    const logger = pino({ level: 'error' }, { write: (line: string) => void logged.push(line) })
    server = await startServer({ store, host: '127.0.0.1', port: 0, identify, logger, ...options })
  })
  afterAll(async () => {
    await server?.close()
    await store?.close()
  })
  const running = <T>(part: T | undefined): T => {
    if (part === undefined) throw new Error('the service runs from beforeAll on, not before')
    return part
  }
  return {
    logged,
    get store() {
      return running(store)
    },
    get server() {
      return running(server)
    },
    url: (project = 'alpha') => `${running(server).url}/projects/${project}/graphql`,
    async query(
      query: string,
      variables: Record<string, unknown> = {},
      { as = 'alice', project = 'alpha' }: { as?: string; project?: string } = {},
    ): Promise<Answer> {
      return answerOf(
        await fetch(`${running(server).url}/projects/${project}/graphql`, {
          method: 'POST',
          headers: { authorization: `Bearer ${as}`, 'content-type': 'application/json' },
          body: JSON.stringify({ query, variables }),
        }),
      )
    },
    /** The id of a project's VPC. */
    async vpc(project = 'alpha'): Promise<string> {
      const vpc = await running(store).prisma.vpc.findFirstOrThrow({ where: { project } })
      return globalId('Vpc', vpc.id)
    },
  }
}
export type Service = ReturnType<typeof useService>

/** Creates a load balancer and answers what is asked of it. */
export async function create(
  service: Service,
  name: string,
  input: Record<string, unknown> = {},
  fields = 'id',
): Promise<{ id: string }> {
  const { body } = await service.query(
    `mutation ($input: CreateLoadBalancerInput!) {
       createLoadBalancer(input: $input) {
         __typename ... on CreateLoadBalancerPayload { loadBalancer { ${fields} } }
         ... on UserError { code message }
       }
     }`,
    {
      input: {
        name,
        vpc: await service.vpc(),
        region: 'us-east-1',
        protocol: { tcp: { port: 443 } },
        ...input,
      },
    },
  )
  const { loadBalancer } = field<{ loadBalancer?: { id: string } }>(body)
  if (!loadBalancer) throw new Error(JSON.stringify(body))
  return loadBalancer
}

/** The one root field of an answer. */
export function field<T>({ data, errors }: Body): T {
  if (errors !== undefined) throw new Error(JSON.stringify(errors))
  return Object.values(data ?? {})[0] as T
}

export async function answerOf(response: Response): Promise<Answer> {
  const text = await response.text()
  const json = response.headers.get('content-type')?.includes('json') ?? false
  return {
    status: response.status,
    headers: response.headers,
    body: json ? JSON.parse(text) : {},
  }
}

/** Two projects with a VPC of four endpoints each, in a region of one cluster. */
export async function fill(store: Store): Promise<void> {
  await createRegion(store, { code: 'us-east-1', displayName: 'US East', cityCode: 'IAD' })
  await registerCluster(store, {
    name: 'east-1',
    region: 'us-east-1',
    context: 'east-1',
    servesIPv4: false,
    hasProber: false,
  })
  await createAddressPool(store, {
    name: 'east-ipv6',
    region: 'us-east-1',
    prefix: '2001:db8:100::/64',
    allocationPrefixLength: 128,
  })
  await createAddressPool(store, {
    name: 'east-ipv4',
    region: 'us-east-1',
    prefix: '198.51.100.0/24',
  })
  const cluster = await store.prisma.cluster.findFirstOrThrow({ where: { name: 'east-1' } })
  for (const [index, project] of ['alpha', 'beta'].entries()) {
    const ref = `vpc${index}`
    await recordVpcs(store, [{ ref, name: 'main', project }])
    const endpoints = [1, 2, 3, 4].map((number) => ({
      attachmentUid: `uid-${index}-${number}`,
      attachmentNamespace: project,
      attachmentName: `machine-${number}`,
      attachmentRef: `att${index}${number}`,
      vpcRef: ref,
      address: `fd00:${index + 1}::${number}`,
      node: `node-${number}`,
      egressKind: 'veth' as const,
    }))
    const uids = endpoints.map(({ attachmentUid }) => attachmentUid)
    await recordEndpoints(store, { cluster: cluster.id, epoch: 0 }, uids, endpoints)
    await setProjectRelease(store, { project, released: true })
  }
}
