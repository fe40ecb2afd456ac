/** Flaws that several mutations of tenants have. */
import { expect } from 'vitest'
import { globalId } from '../../../src/schema/ids.ts'
import { type Flaw, type Input, setting } from './register.ts'
import { RESOURCE, type Stock, uuidIn } from './stock.ts'

type Any = { input: Input }
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

export function notReleased(stock: Stock): Flaw<Any> {
  const release = (released: boolean) =>
    stock.operators('setProjectRelease', { project: 'demo', released })
  return {
    refusal: 'NotReleased',
    how: 'the project was closed',
    spoil: async () => {
      await release(false)
      return () => release(true)
    },
    told: () => ({ path: [], projectName: 'demo' }),
  }
}

/** A field names what there isn't, or what isn't the caller's. */
export const names = (field: string, id: () => string): Flaw<Any> => ({
  refusal: 'NotFound',
  how: `${field} names what is not there`,
  spoil: setting(field, () => id()),
  told: ({ input }) => ({ path: [field], missingId: input[field] }),
})

export const region = (): Flaw<Any> => ({
  refusal: 'NotFound',
  how: 'there is no such region',
  spoil: setting('region', () => 'moon-1'),
  told: () => ({ path: ['region'], missingId: null }),
})

/** A field has a value that isn't valid. */
export const invalid = (
  field: string,
  value: unknown,
  issue: { code: string; path: string[]; suggestion: string | null },
): Flaw<Any> => ({
  refusal: 'ValidationFailed',
  how: `${field} is not valid`,
  spoil: setting(field, () => value),
  told: () => ({ path: issue.path, issues: [{ ...issue, message: expect.any(String) }] }),
})

export const unprintable = (): Flaw<Any> =>
  invalid('displayName', 'a\u0007', {
    code: 'INVALID_TEXT',
    path: ['displayName'],
    suggestion: null,
  })

/** Another object has the name. */
export const nameTaken = (name: () => string): Flaw<Any> => ({
  refusal: 'NameTaken',
  how: 'another one has the name',
  spoil: setting('name', () => name()),
  told: ({ input }) => ({ path: ['name'], takenName: input['name'] }),
})

export const expectsAnother = (currentGeneration: number): Flaw<Any> => ({
  refusal: 'GenerationConflict',
  how: 'it is at another generation',
  spoil: setting('expectedGeneration', () => 99),
  told: () => ({ path: ['expectedGeneration'], expectedGeneration: 99, currentGeneration }),
})

/** The load balancer's deletion was asked for, and a cluster still has it. */
export const beingDeleted = <Scene>(
  stock: Stock,
  target: (scene: Scene) => { id: string },
): Flaw<Scene> => ({
  refusal: 'BeingDeleted',
  how: 'the load balancer is being deleted',
  spoil: async (scene) => {
    await stock.delete(target(scene).id)
    return undefined
  },
  told: () => ({ path: [], since: expect.stringMatching(TIME) }),
})

/** A limit of the project is as low as what there is. */
export const exceeded = (stock: Stock, resource: string): Flaw<Any> => ({
  refusal: 'QuotaExceeded',
  how: `there may be no more ${resource}`,
  spoil: async () => {
    await stock.limit(resource, 1)
    return () => stock.limit(resource, null)
  },
  told: () => ({
    path: [],
    resource: `${RESOURCE}/${resource}`,
    limit: 1,
    used: expect.any(Number),
  }),
})

/** A load balancer has as many reservations as it may. */
export function sevenBound<Scene>(
  stock: Stock,
  target: (scene: Scene) => { id: string },
): Flaw<Scene> {
  const set = (holder: string | null) =>
    stock.sql(
      `UPDATE ipv4_reservation SET load_balancer_id = $1, bound_at = clock_timestamp()
       WHERE address = ANY ($2::inet[])`,
      [holder, stock.shared.seven.map(({ address }) => address)],
    )
  return {
    refusal: 'QuotaExceeded',
    how: 'the load balancer has seven reservations',
    spoil: async (scene) => {
      await set(uuidIn('LoadBalancer', target(scene).id))
      return () => set(null)
    },
    told: () => ({
      path: ['ipv4Reservations'],
      ...{ resource: `${RESOURCE}/ipv4reservations`, limit: 7, used: 8 },
    }),
  }
}

/** The set would be larger than a load balancer's may be. */
export const tooManyBackends = (used: number): Flaw<Any> => ({
  refusal: 'QuotaExceeded',
  how: 'more than 64 backends',
  spoil: setting('backends', (input) => [
    ...listIn(input, 'backends'),
    ...Array.from({ length: 64 }, (_, index) => ({ address: `fd20:1::c:${index}` })),
  ]),
  told: () => ({
    path: ['backends'],
    ...{ resource: `${RESOURCE}/backends`, limit: 64, used },
  }),
})

export const outsideRegion = (stock: Stock): Flaw<Any> => {
  const [address] = stock.installation.addresses('us-west-1-a')
  return {
    refusal: 'BackendsOutsideRegion',
    how: 'a backend lives in another region',
    spoil: setting('backends', (input) => [...listIn(input, 'backends'), { address }]),
    told: () => ({ path: ['backends'], addresses: [address] }),
  }
}

/** No pool of the family hands out addresses. */
export const exhausted = (stock: Stock, family: 'IPV4' | 'IPV6'): Flaw<Any> => ({
  refusal: 'PoolExhausted',
  how: 'the pool hands out nothing',
  spoil: async () => {
    const name = family === 'IPV4' ? 'east4' : 'east6'
    const { addressPool } = stock.installation.store.prisma
    const pool = await addressPool.findUniqueOrThrow({ where: { name } })
    const id = globalId('AddressPool', pool.id)
    await stock.operators('updateAddressPool', { id, state: 'DISABLED' })
    return () => stock.operators('updateAddressPool', { id, state: 'ACTIVE' })
  },
  told: () => ({ path: [], regionCode: 'us-east-1', family }),
})

export function vpcNotOwned(stock: Stock, path: string): Flaw<Any> {
  const owned = (is: boolean) => stock.sql(`UPDATE vpc SET owned = $1 WHERE project = 'demo'`, [is])
  return {
    refusal: 'VPC_NOT_OWNED',
    how: 'the VPC lost its label',
    spoil: async () => {
      await owned(false)
      return () => owned(true)
    },
    told: () => ({ path: [path] }),
  }
}

/** The reservation is of another region than the load balancer. */
export const otherRegion = (
  stock: Stock,
): Flaw<{ input: Input; reservation: { address: string } }> => ({
  refusal: 'RegionMismatch',
  how: 'the reservation is of another region',
  spoil: async ({ reservation }) => {
    await stock.sql(
      `UPDATE ipv4_reservation SET region_id = (SELECT id FROM region WHERE code = 'us-west-1')
       WHERE address = $1`,
      [reservation.address],
    )
    return undefined
  },
  told: () => ({
    path: ['reservation'],
    ...{ expectedRegion: 'us-east-1', actualRegion: 'us-west-1' },
  }),
})

/** A list of the input, empty where there is none yet. */
export function listIn(input: Input, field: string): unknown[] {
  const list = input[field]
  return Array.isArray(list) ? list : []
}
