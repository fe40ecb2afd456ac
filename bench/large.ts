import { randomUUID } from 'node:crypto'
import { BENCH_REGION, CLIENTS } from './bed.ts'
import { type Benchmark, type Finding, inTurns, type Rate, share } from './benchmark.ts'
import { mostMemory } from './cpu.ts'
import { reads } from './reading.ts'
import { type Owner, seedLoadBalancers } from './seed.ts'

/** As many as a project may have by default, with 10 backends each. */
const EACH = 50
const MANY = 100_000
const FEW = 1_000
/** The most memory (MB) that an API process may have had. */
const MEMORY = 400

/** The same reads, where there are 1,000 load balancers and where there are 100,000 with 1,000,000 backends. */
export const large: Benchmark = async (ground, scale) => {
  const bed = await ground.bed()
  const few = { ...bed, made: await filled(bed, share(scale, FEW, EACH)) }
  const other = await bed.another('large')
  const many = { ...other, made: await filled(other, share(scale, MANY, EACH * CLIENTS)) }
  const readers = [few, many].map(({ api, made }) => {
    const by = reads(bed, { api, seconds: scale.seconds, tenants: made.length })
    return { one: () => by.one(made), list: () => by.list() }
  })
  const measured: Record<string, () => Promise<Rate>> = {}
  for (const what of ['one', 'list'] as const) {
    for (const [index, reader] of readers.entries())
      measured[`${what}, ${index ? 'many' : 'few'}`] = reader[what]
  }
  const found = await inTurns(scale, measured)
  const cost = (name: string) => 1 / found(name).perSecond
  const memory = mostMemory(many.api.pid)
  const findings = ['one', 'list'].map(
    (what): Finding => ({
      name: `${what === 'one' ? 'read one' : 'list 50'} among ${MANY} by among ${FEW}`,
      value: cost(`${what}, many`) / cost(`${what}, few`),
      atMost: 1.2,
    }),
  )
  if (memory !== null) {
    findings.push({ name: 'memory of the API', value: memory, unit: ' MB', atMost: MEMORY })
  }
  return findings
}

/** The bed's tenants have as many as all others; answers one of each. */
async function filled(
  place: Parameters<typeof seedLoadBalancers>[0] & { tenants: Owner[] },
  count: number,
): Promise<string[]> {
  const others = Math.max(0, Math.round(count / EACH) - place.tenants.length)
  const owners = [
    ...place.tenants.slice(0, Math.ceil(count / EACH)),
    ...(await ownersIn(place, others)),
  ]
  const made = await seedLoadBalancers(place, { region: BENCH_REGION, tenants: owners, each: EACH })
  return made.slice(0, place.tenants.length).map(({ id }) => id)
}

/** Projects with a VPC of 10 endpoints each. */
async function ownersIn(
  { pool, store }: Parameters<typeof seedLoadBalancers>[0],
  count: number,
): Promise<Owner[]> {
  const clusters = await store.prisma.cluster.findMany()
  const owners = Array.from({ length: count }, (_, index) => ({
    project: `other-${index}`,
    vpc: randomUUID(),
    addresses: Array.from({ length: 10 }, (__, host) => `fd02:${index.toString(16)}::${host + 1}`),
  }))
  await pool.query(
    `INSERT INTO vpc (id, ref, name, project, owned)
     SELECT id, 'other' || id, 'vpc', project, true FROM unnest($1::uuid[], $2::text[]) AS each (id, project)`,
    [owners.map(({ vpc }) => vpc), owners.map(({ project }) => project)],
  )
  const endpoints = owners.flatMap(({ vpc, addresses }) =>
    addresses.map((address) => [vpc, address]),
  )
  await pool.query(
    `INSERT INTO endpoint (cluster_id, attachment_uid, address, vpc_id, attachment_namespace, attachment_name,
       attachment_ref, node, egress_kind)
     SELECT ($1::uuid[])[1 + number % 2], gen_random_uuid(), address, vpc, 'other', 'machine', 'a', 'node-' || number % 100, 'veth'
     FROM unnest($2::uuid[], $3::inet[]) WITH ORDINALITY AS each (vpc, address, number)`,
    [
      clusters.map(({ id }) => id),
      endpoints.map(([vpc]) => vpc),
      endpoints.map(([, address]) => address),
    ],
  )
  return owners
}
