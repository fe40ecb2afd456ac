import type { Store } from '../../db/client.ts'
import type { ValidationIssue } from '../input.ts'
import { Conditions, countRows, type PageRequest, readPage } from '../paging.ts'
import { FIXED, QUOTAS, type QuotaRecord, readQuotas } from '../quotas.ts'
import type { Page } from '../records.ts'
import { NotFound, type Refusal, Refused, ValidationFailed } from '../refusals.ts'
import { findRegion, noRegion } from './regions.ts'

export type ProjectRecord = { name: string; released: boolean }

/** As it stands in paths. */
const PROJECT = /^[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?$/

/** Opens or closes load balancers to a project, which is known from then on. */
export async function setProjectRelease(
  store: Store,
  input: { project: string; released: boolean },
): Promise<{ project: ProjectRecord } | Refusal> {
  const { project: name, released } = input
  if (!PROJECT.test(name)) {
    const message = `"${name}" can't be the name of a project.`
    return new ValidationFailed([
      { code: 'INVALID_PROJECT', message, path: ['project'], suggestion: null },
    ])
  }
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

/** One page of the projects that are known, by name. */
export function listProjects(store: Store, page: PageRequest): Promise<Page<ProjectRecord>> {
  return readPage<ProjectRecord>(
    store.pool,
    {
      from: 'project',
      item: "json_build_object('name', project.name, 'released', project.released)",
      // Names are unique; pages want a UUID that tells rows of equal rank apart.
      id: 'md5(project.name)::uuid',
      order: { sql: 'project.name', type: 'text', descending: false },
      conditions: new Conditions(),
    },
    page,
  )
}

/** How many projects are known. */
export function countProjects(store: Store): Promise<number> {
  return countRows(store.pool, { from: 'project', conditions: new Conditions() })
}

/** Sets how many of a resource a project may have in a region; null: unlimited. */
export async function setQuota(
  store: Store,
  input: { project: string; resource: string; region?: string | null; limit?: number | null },
): Promise<{ quota: QuotaRecord } | Refusal> {
  const { project, resource, limit = null } = input
  if (!PROJECT.test(project) || !(await isProjectKnown(store, project))) {
    return new NotFound({
      message: `There is no project "${project}".`,
      path: ['project'],
      hint: 'setProjectRelease makes a project known; so does a VPC of it in a cluster.',
      missingId: null,
    })
  }
  const code = input.region ?? null
  const regionId = code === null ? null : await findRegion(store, code)
  if (code !== null && regionId === null) return noRegion(code)
  const issues = quotaIssues(input)
  if (issues.length > 0 || regionId === null) return new ValidationFailed(issues)
  if (resource === FIXED.resource) {
    return new Refused('QUOTA_FIXED', {
      message: `A load balancer takes ${FIXED.limit} backends: the data plane has no room for more.`,
      path: ['resource'],
    })
  }
  const key = { project, resource, regionId }
  await store.prisma.quota.upsert({
    where: { project_resource_regionId: key },
    create: { ...key, limit },
    update: { limit },
  })
  const quotas = await readQuotas(store, { project, region: code })
  const quota = quotas.find((one) => one.resource === resource)
  if (quota === undefined) throw new Error(`no quota is read for ${resource}`)
  return { quota }
}

function quotaIssues(input: Parameters<typeof setQuota>[1]): ValidationIssue[] {
  const names = [...QUOTAS, FIXED.resource]
  const issue = (code: string, field: string, message: string): ValidationIssue => ({
    code,
    message,
    path: [field],
    suggestion: names.find((name) => field === 'resource' && name.endsWith(input.resource)) ?? null,
  })
  return [
    ...(names.some((name) => name === input.resource)
      ? []
      : [issue('UNKNOWN_RESOURCE', 'resource', `It is one of ${names.join(', ')}.`)]),
    ...(input.region == null
      ? [issue('REGION_REQUIRED', 'region', 'Every quota of today is one of a region.')]
      : []),
    ...(input.limit == null || input.limit >= 0
      ? []
      : [issue('OUT_OF_RANGE', 'limit', 'A limit is 0 or more; null is unlimited.')]),
  ]
}
