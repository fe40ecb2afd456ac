import type { Store } from '../../db/client.ts'
import { type Refusal, Refused } from '../refusals.ts'
import { noRegion } from './regions.ts'

/** Opens or closes load balancers to a project, which is known from then on. */
export async function setProjectRelease(
  store: Store,
  input: { project: string; released: boolean },
): Promise<{ project: { name: string; released: boolean } }> {
  const { project: name, released } = input
  await store.prisma.project.upsert({
    where: { name },
    create: { name, released },
    update: { released },
  })
  return { project: { name, released } }
}

/** Whether a project is known: an inventory showed a VPC of it, or an operator named it. */
export async function isProjectKnown(store: Store, name: string): Promise<boolean> {
  const { rows } = await store.pool.query({
    name: 'is-project-known',
    text: 'SELECT FROM project WHERE name = $1',
    values: [name],
  })
  return rows.length > 0
}

const RESOURCES = new Set([
  'networking.datumapis.com/loadbalancers',
  'networking.datumapis.com/ipv4reservations',
  'networking.datumapis.com/rulespervpc',
])

/** Sets how many of a resource a project may have in a region; null: unlimited. */
export async function setQuota(
  store: Store,
  input: { project: string; resource: string; region: string; limit: number | null },
): Promise<{ quota: { resource: string; limit: number | null } } | Refusal> {
  const { project, resource, limit } = input
  if (!RESOURCES.has(resource)) {
    return new Refused('UNKNOWN_RESOURCE', {
      message: `There is no quota for "${resource}".`,
      path: ['resource'],
      hint: `It is one of ${[...RESOURCES].join(', ')}.`,
    })
  }
  const region = await store.prisma.region.findUnique({ where: { code: input.region } })
  if (region === null) return noRegion(input.region)
  const key = { project, resource, regionId: region.id }
  await store.prisma.quota.upsert({
    where: { project_resource_regionId: key },
    create: { ...key, limit },
    update: { limit },
  })
  return { quota: { resource, limit } }
}
