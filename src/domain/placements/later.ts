import { alone } from '../../db/alone.ts'
import type { Store } from '../../db/client.ts'
import type { Querier } from '../querier.ts'
import { rederive } from './derive.ts'

/** A load balancer that is to be derived anew, and how often that was asked for. */
export type Asked = { id: string; asked: number }

/** So long (ms) a change of a cluster derives before it answers; what is left then is derived by workers. */
const AT_FIRST = 1_000
/** So many are read at a time. */
const BATCH = 500

/** The load balancers that are placed in a cluster, or have a backend that lives there. */
const LIVING_IN = `
SELECT load_balancer_id AS id FROM placement WHERE cluster_id = $1
UNION
SELECT lb.id FROM endpoint JOIN backend ON backend.address = endpoint.address
JOIN load_balancer lb ON lb.id = backend.load_balancer_id AND lb.vpc_id = endpoint.vpc_id
WHERE endpoint.cluster_id = $1`

/** Their ids. */
export async function livingIn({ pool }: Store, cluster: string): Promise<string[]> {
  const { rows } = await pool.query<{ id: string }>(LIVING_IN, [cluster])
  return rows.map(({ id }) => id)
}

/** Asks, as part of a change, that the load balancers that live in a cluster be derived anew. */
export function askLiving(client: Querier, cluster: string): Promise<Asked[]> {
  return ask(client, LIVING_IN, cluster)
}

/** The same of some load balancers. */
export function askThese(client: Querier, ids: readonly string[]): Promise<Asked[]> {
  return ask(client, 'SELECT unnest($1::uuid[]) AS id', ids)
}

async function ask(client: Querier, selected: string, value: unknown): Promise<Asked[]> {
  const { rows } = await client.query<Asked>(
    `INSERT INTO derivation (load_balancer_id)
     SELECT DISTINCT id FROM (${selected}) AS selected ORDER BY id
     ON CONFLICT (load_balancer_id) DO UPDATE SET asked = derivation.asked + 1
     RETURNING load_balancer_id AS id, asked`,
    [value],
  )
  return rows
}

/** Derives what a change asked for, for as long as its caller may wait. */
export async function deriveAtFirst(store: Store, asked: Asked[], most = AT_FIRST): Promise<void> {
  const over = performance.now() + most
  for (const one of asked) {
    if (performance.now() >= over) return
    await derive(store, one)
  }
}

/**
 * Derives what was asked for and isn't done yet, unless another process is at it. What fails is left,
 * and thrown when the others are done. Answers how many there were.
 */
export async function deriveAsked(store: Store, signal: AbortSignal): Promise<number> {
  if ((await readAsked(store, NONE)).length === 0) return 0
  return (await alone(store, 'derive what was asked for', () => deriveAll(store, signal))) ?? 0
}

const NONE = '00000000-0000-0000-0000-000000000000'

async function deriveAll(store: Store, signal: AbortSignal): Promise<number> {
  let derived = 0
  const failures: unknown[] = []
  for (let some = await readAsked(store, NONE); some.length > 0; ) {
    for (const one of some) {
      if (signal.aborted) return derived
      try {
        await derive(store, one)
        derived += 1
      } catch (error) {
        failures.push(error)
      }
    }
    some = await readAsked(store, some.at(-1)?.id ?? NONE)
  }
  if (failures.length > 0) throw failures[0]
  return derived
}

/** What was asked for once more meanwhile stays asked for. */
async function derive(store: Store, { id, asked }: Asked): Promise<void> {
  await rederive(store, id)
  await store.pool.query({
    name: 'end-derivation',
    text: 'DELETE FROM derivation WHERE load_balancer_id = $1 AND asked = $2',
    values: [id, asked],
  })
}

async function readAsked(store: Store, after: string): Promise<Asked[]> {
  const { rows } = await store.pool.query<Asked>({
    name: 'read-derivations',
    text: `
SELECT load_balancer_id AS id, asked FROM derivation
WHERE load_balancer_id > $1 ORDER BY load_balancer_id LIMIT ${BATCH}`,
    values: [after],
  })
  return rows
}
