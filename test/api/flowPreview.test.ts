import { describe, expect, it } from 'vitest'
import { type Affinity, slotOf } from '../../src/maglev/flow.ts'
import { backendKey, tableOf } from '../../src/maglev/table.ts'
import { decodeId } from '../../src/schema/ids.ts'
import { useInstallation } from '../support/installation.ts'
import { rulesIn } from '../support/objects.ts'
import { createLoadBalancer, type LoadBalancer } from './operations.ts'
import { quiet } from './plan.ts'

const installation = useInstallation({ endpointsPerCluster: 4 })
let port = 9_000

type Preview = {
  backend: { id: string; address: string; serving: boolean } | null
  slot: number | null
  tableSize: number
  hashedOver: string[]
  clusters: number
  share: number
}
const PREVIEW = `query ($id: ID!, $client: FlowInput!) { loadBalancer(id: $id) { flowPreview(client: $client) {
  backend { id address serving } slot tableSize hashedOver clusters share } } }`

async function preview(id: string, client: object): Promise<Preview[]> {
  const { flowPreview } = await installation.api.get<{ flowPreview: Preview[] }>(PREVIEW, {
    id,
    client,
  })
  return flowPreview
}

async function create(clusters: string[], more: object = {}): Promise<LoadBalancer> {
  port += 1
  const made = await createLoadBalancer(installation, {
    name: `previewed-${port}`,
    protocol: { tcp: { port } },
    backends: clusters.flatMap((cluster) =>
      installation.addresses(cluster).map((address) => ({ address })),
    ),
    ...more,
  })
  await quiet(installation)
  return made
}

/** Whom the table made of the rule in a cluster gives a client to. */
async function servedIn(cluster: string, { addresses }: LoadBalancer, slot: number) {
  const vips = new Set(addresses.map(({ address }) => address))
  const rules = await rulesIn(installation.fleet.get(cluster))
  const rule = rules.find(({ spec }) => spec.vipAddresses.some((vip) => vips.has(vip)))
  const listed = rule && 'backends' in rule.spec ? rule.spec.backends : []
  const table = tableOf(listed.map((one) => backendKey(one.address, one.port)))
  if ('refused' in table) throw new Error(table.message)
  return table.keys[table.slots[slot] ?? 0]?.replace(/:\d+$/, '')
}

const CLIENTS = [
  { address: '2001:db8:ffff::1', port: 443, slot: 969 },
  { address: '2001:db8:ffff::1', port: 65_535, slot: 171 },
  { address: '::1', port: 5_000, slot: 704 },
]

describe('a flow preview', () => {
  it.each(CLIENTS)(
    'of [$address]:$port names who serves it in each distinct table',
    async ({ slot, ...client }) => {
      const clusters = ['us-east-1-a', 'us-east-1-b']
      const made = await create(clusters)
      const answers = await preview(made.id, client)
      const expected = await Promise.all(
        clusters.map(async (cluster) => ({
          backend: { address: await servedIn(cluster, made, slot), serving: true },
          slot,
          tableSize: 1021,
          hashedOver: ['CLIENT_ADDRESS', 'CLIENT_PORT'],
          clusters: 1,
          share: 0.5,
        })),
      )
      expect(answers).toMatchObject(expected)
    },
  )

  it('is one where one cluster serves it, in any spelling of the address', async () => {
    const made = await create(['us-east-1-b'])
    const answers = await preview(made.id, { address: '2001:DB8:ffff:0::1', port: 443 })
    expect(answers).toMatchObject([{ slot: 969, clusters: 1, share: 1 }])
    expect(answers[0]?.backend?.address).toBe(await servedIn('us-east-1-b', made, 969))
  })

  it('takes IPv4 clients too', async () => {
    const made = await create(['us-west-1-a'], { region: 'us-west-1' })
    const client = { address: '192.0.2.7', port: 1_024 }
    const slot = slotOf({ ...client, protocol: 6 }, 'NONE')
    expect(await preview(made.id, client)).toMatchObject([{ slot }])
  })

  it('names nobody where nothing serves', async () => {
    const made = await create([])
    expect(await preview(made.id, { address: '::1', port: 1 })).toEqual([
      {
        backend: null,
        slot: null,
        tableSize: 1021,
        hashedOver: ['CLIENT_ADDRESS', 'CLIENT_PORT'],
        clusters: 0,
        share: 0,
      },
    ])
  })

  it.each([
    ['CLIENT_IP', ['CLIENT_ADDRESS']],
    ['CLIENT_IP_AND_PROTOCOL', ['CLIENT_ADDRESS', 'PROTOCOL']],
  ] as const)(
    'by %s needs no port where that is kept, and tells apart where it is not',
    async (affinity, hashedOver) => {
      const made = await create(['us-east-1-a', 'us-east-1-b'], { sessionAffinity: affinity })
      // No data plane of these clusters keeps it; as if that of one did.
      await honoured(made.id, 'us-east-1-a')
      const client = { address: '2001:db8:ffff::1', port: 443 }
      const of = (kept: Affinity) => slotOf({ ...client, protocol: 6 }, kept)
      const answers = await preview(made.id, client)
      expect(answers).toMatchObject([
        { slot: of(affinity), hashedOver, share: 0.5 },
        { slot: of('NONE'), hashedOver: ['CLIENT_ADDRESS', 'CLIENT_PORT'], share: 0.5 },
      ])
      await honoured(made.id, 'us-east-1-b')
      const { address } = client
      expect(await preview(made.id, { address })).toMatchObject([
        { slot: of(affinity), hashedOver },
        { slot: of(affinity), hashedOver },
      ])
    },
  )

  it('without the port that is hashed, or with a bad address, is bad input', async () => {
    const made = await create(['us-east-1-a'])
    const asked = async (client: object) => {
      const { data, errors } = await installation.api.ask(PREVIEW, { id: made.id, client })
      expect(data).toMatchObject({ loadBalancer: { flowPreview: null } })
      expect(errors?.[0]?.extensions?.code).toBe('BAD_USER_INPUT')
      return errors?.[0]?.message
    }
    expect(await asked({ address: '::1' })).toContain('client.port')
    expect(await asked({ address: '010.0.0.1', port: 1 })).toContain('10.0.0.1')
    expect(await asked({ address: '::1', port: 0 })).toContain('port')
  })
})

async function honoured(id: string, cluster: string): Promise<void> {
  await installation.store.pool.query(
    `UPDATE placement SET report = jsonb_set(report, '{affinity,status}', '"TRUE"')
     WHERE load_balancer_id = $1 AND cluster_id = (SELECT id FROM cluster WHERE name = $2)`,
    [decodeId(id)?.uuid, cluster],
  )
}
