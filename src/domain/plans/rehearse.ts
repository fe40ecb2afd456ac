import type { PoolClient } from 'pg'
import type { FieldChange } from '../events/append.ts'
import { Refusal } from '../refusals.ts'
import { flowImpacts } from './flows.ts'
import type { AddressChange, Planned, Warning } from './plan.ts'
import { ruleChanges } from './rules.ts'
import { type About, readScene, type Scene } from './scene.ts'
import { warningsOf } from './warnings.ts'

/**
 * Finds out what a change does by doing it and undoing it, in a transaction that the caller rolls
 * back: what is told is what the same code, on the same store, does. `make` answers the changes that
 * its event tells, or why it refused.
 */
export async function rehearse(
  client: PoolClient,
  about: About,
  make: () => Promise<FieldChange[] | Refusal>,
): Promise<Planned | Refusal> {
  const rivals = await rivalsOf(client, about.loadBalancers)
  const bound = await reservationsOf(client, about.loadBalancers)
  await client.query('SAVEPOINT rehearsal')
  const changes = await make()
  if (changes instanceof Refusal) return changes
  const loadBalancers = union(
    about.loadBalancers,
    rivals,
    await rivalsOf(client, about.loadBalancers),
  )
  const reservations = union(
    about.reservations,
    bound,
    await reservationsOf(client, about.loadBalancers),
  )
  const after = await readScene(client, { loadBalancers, reservations })
  await client.query('ROLLBACK TO SAVEPOINT rehearsal')
  const before = await readScene(client, { loadBalancers, reservations })
  const addresses = addressChanges(before, after, about.loadBalancers)
  const rules = ruleChanges(before, after)
  const flows = flowImpacts(before, after, about.loadBalancers)
  const nothing = [changes, addresses, rules].every((list) => list.length === 0)
  const warnings = nothing ? [UNCHANGED] : warningsOf({ before, after, about })
  return { plan: { addresses, flows, warnings, changes, rules } }
}

const UNCHANGED: Warning = {
  code: 'UNCHANGED',
  message: 'Everything is so already: this change would change nothing.',
  path: [],
}

const union = (...lists: string[][]): string[] => [...new Set(lists.flat())].sort()

/**
 * The load balancers that stand with one of these for the same place of the data plane: the same VPC,
 * node, protocol and port. Such a place is had by one, and a VPC has at most 64 served addresses.
 */
async function rivalsOf(client: PoolClient, ids: string[]): Promise<string[]> {
  const { rows } = await client.query<{ id: string }>({
    name: 'rivals',
    text: `
SELECT DISTINCT rival.id
FROM load_balancer lb
JOIN backend mine ON mine.load_balancer_id = lb.id
JOIN endpoint here ON here.vpc_id = lb.vpc_id AND here.address = mine.address
JOIN endpoint there ON there.cluster_id = here.cluster_id AND there.vpc_id = here.vpc_id AND there.node = here.node
JOIN backend theirs ON theirs.address = there.address
JOIN load_balancer rival ON rival.id = theirs.load_balancer_id AND rival.id <> lb.id
  AND rival.vpc_id = lb.vpc_id AND rival.protocol = lb.protocol AND rival.port = lb.port
  AND rival.region_id = lb.region_id AND rival.deleting_since IS NULL
WHERE lb.id = ANY ($1::uuid[])
ORDER BY rival.id LIMIT 64`,
    values: [ids],
  })
  return rows.map(({ id }) => id)
}

async function reservationsOf(client: PoolClient, loadBalancers: string[]): Promise<string[]> {
  const { rows } = await client.query<{ id: string }>({
    name: 'reservations-bound-to',
    text: 'SELECT id FROM ipv4_reservation WHERE load_balancer_id = ANY ($1::uuid[])',
    values: [loadBalancers],
  })
  return rows.map(({ id }) => id)
}

function addressChanges(before: Scene, after: Scene, loadBalancers: string[]): AddressChange[] {
  const subjects = new Set(loadBalancers)
  const isSubject = (holder: string | null | undefined) =>
    holder === null || holder === undefined || subjects.has(holder)
  const addresses = union([...before.addresses.keys()], [...after.addresses.keys()])
  return addresses.flatMap((address): AddressChange[] => {
    const was = before.addresses.get(address)
    const is = after.addresses.get(address)
    if (!isSubject(was?.holder) || !isSubject(is?.holder)) return []
    if (was === undefined) return [{ address, action: 'CREATE' }]
    if (is === undefined) return [{ address, action: 'DELETE' }]
    return was.holder === is.holder ? [] : [{ address, action: 'UPDATE' }]
  })
}
