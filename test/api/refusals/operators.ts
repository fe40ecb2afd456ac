/** How changes of operators are refused. */
import { expect } from 'vitest'
import type { Told } from '../operators.ts'
import * as flaws from './flaws.ts'
import { type Ask, type Case, caseOf, type Flaw, type Input, setting } from './register.ts'
import { RESOURCE, type Stock, uuidIn } from './stock.ts'

type OfCluster = { input: Input; cluster: { id: string; name: string } }
type OfPool = { input: Input; pool: { id: string }; region: string; prefix: string }

/** Names no object of operators. */
const nowhere = () => 'bm93aGVyZQ=='

export function operatorCases(stock: Stock, ask: Ask): Case[] {
  const cluster = async (): Promise<OfCluster['cluster']> => {
    const name = `cluster-${stock.next()}`
    const input = { name, region: 'us-east-1', context: name }
    const { cluster: made } = await stock.operators('registerCluster', input)
    return known(made)
  }
  const clusterScene =
    (more: Input, mode = 'ACTIVE') =>
    async (): Promise<OfCluster> => {
      const made = await cluster()
      if (mode !== 'ACTIVE') await stock.operators('updateCluster', { id: made.id, mode })
      return { cluster: made, input: { id: made.id, ...more } }
    }
  /** In a region of its own. */
  const pool = async (): Promise<OfPool> => {
    const number = stock.next()
    const region = `region-${number}`
    const prefix = `fd99:${number.toString(16)}::/64`
    await stock.operators('createRegion', { code: region, displayName: region, cityCode: 'IAD' })
    const input = { name: `pool-${number}`, region, prefix }
    const made = known((await stock.operators('createAddressPool', input)).pool)
    return { pool: made, region, prefix, input: { id: made.id } }
  }
  const inUse = (path: string): Flaw<OfPool> => ({
    refusal: 'PoolInUse',
    how: 'a load balancer has an address of it',
    spoil: async ({ input, region, prefix }) => {
      await stock.loadBalancer({ region, backends: [] })
      // The first half of it: whoever begins at the end isn't hurt.
      if (path === 'prefix') input['prefix'] = prefix.replace('::/64', ':0:0:8000::/65')
      return undefined
    },
    told: ({ prefix }) => ({
      path: [path],
      holders: [expect.stringMatching(prefix.replace('::/64', ''))],
    }),
  })
  const overlap = (): Flaw<{ input: Input }> => ({
    refusal: 'PoolOverlap',
    how: 'another pool has some of the addresses',
    spoil: setting('prefix', () => '2001:db8:1::/56'),
    told: () => ({ path: ['prefix'], poolName: 'east6', prefix: '2001:db8:1::/64' }),
  })
  const wrong = (field: string, value: unknown, code: string) =>
    flaws.invalid(field, value, { code, path: [field], suggestion: null })
  return [
    caseOf(
      ask,
      'createRegion',
      async () => ({
        input: { code: `region-${stock.next()}`, displayName: 'Region', cityCode: 'IAD' },
      }),
      [
        wrong('cityCode', 'iad', 'INVALID_CITY_CODE'),
        {
          refusal: 'NameTaken',
          how: 'another region has the code',
          spoil: setting('code', () => 'us-east-1'),
          told: () => ({ path: ['code'], takenName: 'us-east-1' }),
        },
      ],
    ),
    caseOf(
      ask,
      'registerCluster',
      async () => ({
        input: { name: `cluster-${stock.next()}`, region: 'us-east-1', context: 'any' },
      }),
      [
        flaws.region(),
        wrong('context', '', 'INVALID_CONTEXT'),
        flaws.nameTaken(() => 'us-east-1-a'),
      ],
    ),
    caseOf(ask, 'updateCluster', clusterScene({ servesIPv4: true }), [
      flaws.names('id', nowhere),
      wrong('context', '', 'INVALID_CONTEXT'),
      {
        refusal: 'CLUSTER_FORGOTTEN',
        how: 'it was given up on',
        spoil: async ({ input, cluster: { id } }) => {
          await stock.operators('forgetCluster', { id })
          input['mode'] = 'ACTIVE'
          return undefined
        },
        told: () => ({ path: ['mode'] }),
      },
    ]),
    caseOf(ask, 'removeCluster', clusterScene({}, 'DRAINED'), [
      flaws.names('id', nowhere),
      {
        refusal: 'ClusterInUse',
        how: 'a rule may be left there',
        spoil: async ({ cluster: { id } }) => {
          await stock.sql(
            `INSERT INTO hold (cluster_id, vip, load_balancer_id, rule_name)
             VALUES ($1, '2001:db8:1::1', $2, 'left')`,
            [uuidIn('Cluster', id), uuidIn('LoadBalancer', stock.shared.loadBalancer.id)],
          )
          return undefined
        },
        told: () => ({ path: ['id'], rules: 1 }),
      },
      {
        refusal: 'CLUSTER_NOT_DRAINED',
        how: 'it is in use',
        spoil: async ({ cluster: { id } }) => {
          await stock.operators('updateCluster', { id, mode: 'ACTIVE' })
          return undefined
        },
        told: () => ({ path: ['id'] }),
      },
    ]),
    caseOf(ask, 'forgetCluster', clusterScene({}), [
      flaws.names('id', nowhere),
      {
        refusal: 'CLUSTER_REACHABLE',
        how: 'it answers its worker',
        spoil: async ({ cluster: { id } }) => {
          await stock.sql(
            `UPDATE cluster SET lease_until = clock_timestamp() + interval '1 hour' WHERE id = $1`,
            [uuidIn('Cluster', id)],
          )
          return undefined
        },
        told: () => ({ path: ['id'] }),
      },
    ]),
    caseOf(
      ask,
      'createAddressPool',
      async () => {
        const number = stock.next()
        const prefix = `fd99:${number.toString(16)}::/64`
        return { input: { name: `pool-${number}`, region: 'us-east-1', prefix } }
      },
      [
        flaws.region(),
        wrong('coolDownSeconds', -1, 'OUT_OF_RANGE'),
        flaws.nameTaken(() => 'west6'),
        overlap(),
      ],
    ),
    caseOf(ask, 'updateAddressPool', pool, [
      flaws.names('id', nowhere),
      wrong('coolDownSeconds', -1, 'OUT_OF_RANGE'),
      overlap(),
      inUse('prefix'),
    ]),
    caseOf(ask, 'deleteAddressPool', pool, [flaws.names('id', nowhere), inUse('id')]),
    caseOf(
      ask,
      'setQuota',
      async () => ({
        input: { project: 'other', resource: `${RESOURCE}/loadbalancers`, region: 'us-east-1' },
      }),
      [
        {
          refusal: 'NotFound',
          how: 'nobody knows the project',
          spoil: setting('project', () => 'unheard-of'),
          told: () => ({ path: ['project'], missingId: null }),
        },
        flaws.region(),
        wrong('limit', -1, 'OUT_OF_RANGE'),
        {
          refusal: 'QUOTA_FIXED',
          how: 'it is the same for all',
          spoil: setting('resource', () => `${RESOURCE}/backends`),
          told: () => ({ path: ['resource'] }),
        },
      ],
    ),
    caseOf(
      ask,
      'setProjectRelease',
      async () => ({ input: { project: `project-${stock.next()}`, released: true } }),
      [wrong('project', 'No Path', 'INVALID_PROJECT')],
    ),
    caseOf(
      ask,
      'reportReachability',
      async () => ({ input: { vantage: 'outside', results: [] } }),
      [wrong('vantage', '', 'INVALID_NAME')],
    ),
  ]
}

function known<T extends NonNullable<Told['cluster'] | Told['pool']>>(made: T | undefined): T {
  if (made === undefined) throw new Error('the payload has no object')
  return made
}
