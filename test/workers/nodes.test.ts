import { describe, expect, it } from 'vitest'
import { accepted, DELETE, REMOVE_BACKENDS, UPDATE, UPDATE_BACKENDS } from '../api/operations.ts'
import { useInstallation } from '../support/installation.ts'
import {
  add,
  attach,
  bindingsUntil,
  createSettled,
  isOf,
  known,
  listed,
  shown,
  vipOf,
  witness,
} from './scene.ts'

/** *backends* dialect: a node keeps one row for each VPC, protocol and port. */
const installation = useInstallation({
  clusters: [{ name: 'us-east-1-a', region: 'us-east-1', servesIPv4: false }],
})
const cluster = () => installation.fleet.get('us-east-1-a')
const row = (node: string, port: number) =>
  cluster()
    .dataPlane.rows()
    .find((each) => each.direction === 'ingress' && each.node === node && each.vipPort === port)

let pairs = 0
/** Two addresses on one node. */
async function pair() {
  pairs += 1
  const older = `fd20:1::a:${pairs}:1`
  const younger = `fd20:1::a:${pairs}:2`
  const node = `shared-${pairs}`
  await attach(cluster(), { addresses: [older], node })
  await attach(cluster(), { addresses: [younger], node })
  for (const each of [older, younger]) await known(installation, each, ['us-east-1-a'])
  return { older, younger, node }
}

describe('of two backends on one node', () => {
  it('the older serves and the younger says NodeConflict, and serves when the older is removed', async () => {
    const { older, younger, node } = await pair()
    const made = await createSettled(installation, [older])
    await add(installation, made, younger)
    await installation.api.settled(made.id)
    const now = await shown(installation, made, ({ backends }) => backends.nodes.length === 2)
    expect(now.backends.nodes.map(({ serving, resolved }) => [serving, resolved.reason])).toEqual([
      [true, 'Resolved'],
      [false, 'NodeConflict'],
    ])
    expect(now.status).toMatchObject({ phase: 'DEGRADED', ready: { status: 'TRUE' } })
    await accepted(installation.api, REMOVE_BACKENDS, { loadBalancer: made.id, addresses: [older] })
    await listed(cluster(), made, [younger])
    await installation.api.settled(made.id)
    expect(row(node, made.port)).toMatchObject({ backendAddress: younger, vips: [vipOf(made)] })
  })
})

describe('of two load balancers with a backend on one node', () => {
  /** The younger one has another backend elsewhere, so that it has a rule all the time. */
  async function rivals() {
    const { older, younger, node } = await pair()
    const alone = `fd20:1::b:${pairs}`
    await attach(cluster(), { addresses: [alone] })
    await known(installation, alone, ['us-east-1-a'])
    const winner = await createSettled(installation, [older])
    const loser = await createSettled(installation, [alone, younger], {
      protocol: { tcp: { port: winner.port } },
    })
    await listed(cluster(), loser, [alone])
    const now = await shown(installation, loser, ({ status }) => status.phase === 'DEGRADED')
    expect(now.backends.nodes.map(({ resolved }) => resolved.reason).toSorted()).toEqual([
      'NodeConflict',
      'Resolved',
    ])
    expect(row(node, winner.port)).toMatchObject({ vips: [vipOf(winner)] })
    return { winner, loser, older, younger, alone, node }
  }

  it.each([
    [
      'changes its port',
      ({ id, port }: { id: string; port: number }) =>
        accepted(installation.api, UPDATE, { id, protocol: { tcp: { port: port + 20_000 } } }),
    ],
    ['is deleted', ({ id }: { id: string }) => accepted(installation.api, DELETE, { id })],
    [
      'loses its backend',
      ({ id }: { id: string }, older: string) =>
        accepted(installation.api, REMOVE_BACKENDS, { loadBalancer: id, addresses: [older] }),
    ],
    [
      'has its backend disabled',
      ({ id }: { id: string }, older: string) =>
        accepted(installation.api, UPDATE_BACKENDS, {
          loadBalancer: id,
          backends: [{ address: older, adminState: 'DISABLED' }],
        }),
    ],
  ] as const)('the younger serves at once when the older %s', async (_, leave) => {
    const { winner, loser, older, younger, alone, node } = await rivals()
    const began = performance.now()
    await leave(winner, older)
    await listed(cluster(), loser, [alone, younger])
    await bindingsUntil(cluster(), (all) =>
      all.some(
        ({ spec, status }) =>
          spec.vipAddress === vipOf(loser) &&
          spec.targetRef.name === node &&
          status?.conditions?.[0]?.status === 'True',
      ),
    )
    expect(performance.now() - began).toBeLessThan(5_000)
    expect(row(node, winner.port)).toMatchObject({ vips: [vipOf(loser)], backendAddress: younger })
    await shown(installation, loser, ({ status }) => status.phase === 'ACTIVE')
  })

  it('the loser is not bound while the binding of the winner still stands, and says that it waits', async () => {
    const { winner, loser, older, younger, node } = await rivals()
    const letGo = cluster().dataPlane.hold('teardown', vipOf(winner))
    await accepted(installation.api, REMOVE_BACKENDS, {
      loadBalancer: winner.id,
      addresses: [older],
    })
    await bindingsUntil(cluster(), (all) =>
      all.some(
        ({ metadata, spec }) =>
          spec.vipAddress === vipOf(winner) && metadata.deletionTimestamp !== undefined,
      ),
    )
    await shown(installation, loser, ({ status }) => status.provisioned.reason === 'Progressing')
    const standing = await bindingsUntil(cluster(), () => true)
    expect(
      standing
        .filter(({ spec }) => spec.targetRef.name === node)
        .map(({ spec }) => spec.vipAddress),
    ).toEqual([vipOf(winner)])
    letGo()
    await bindingsUntil(cluster(), (all) =>
      all.some(({ spec }) => spec.vipAddress === vipOf(loser) && spec.targetRef.name === node),
    )
    await shown(installation, loser, ({ status }) => status.phase === 'ACTIVE')
    expect(row(node, winner.port)).toMatchObject({ vips: [vipOf(loser)], backendAddress: younger })
  })

  it('an older one that comes back takes the place over, never beside the younger', async () => {
    const { winner, loser, older, younger, alone, node } = await rivals()
    const set = (adminState: string) =>
      accepted(installation.api, UPDATE_BACKENDS, {
        loadBalancer: winner.id,
        backends: [{ address: older, adminState }],
      })
    const { seen, end } = witness(cluster(), 'servicevipbindings')
    for (let round = 0; round < 3; round += 1) {
      await set('DISABLED')
      await listed(cluster(), loser, [alone, younger])
      await set('ENABLED')
      await listed(cluster(), winner, [older])
    }
    await installation.api.settled(winner.id)
    await shown(installation, loser, ({ status }) => status.phase === 'DEGRADED')
    end()
    const standing = new Set<string>()
    for (const { type, name, object } of seen) {
      if (object.spec.targetRef.name !== node || object.spec.port !== winner.port) continue
      if (type === 'DELETED') standing.delete(name)
      else standing.add(name)
      expect([...standing]).toHaveLength(Math.min(standing.size, 1))
    }
    expect(row(node, winner.port)).toMatchObject({ vips: [vipOf(winner)], backendAddress: older })
  })

  it('another protocol is no conflict', async () => {
    const { older, younger, node } = await pair()
    const tcp = await createSettled(installation, [older])
    const udp = await createSettled(installation, [younger], {
      protocol: { udp: { port: tcp.port } },
    })
    await shown(installation, udp, ({ status }) => status.phase === 'ACTIVE')
    const rows = cluster()
      .dataPlane.rows()
      .filter((each) => each.node === node)
    expect(new Set(rows.map(({ protocol }) => protocol))).toEqual(new Set(['tcp', 'udp']))
  })
})

describe('bindings', () => {
  it('go before their rule, and are never edited', async () => {
    const [address = ''] = installation.addresses('us-east-1-a')
    const bindings = witness(cluster(), 'servicevipbindings')
    const rules = witness(cluster(), 'networkrules')
    const made = await createSettled(installation, [address])
    const port = made.port + 30_000
    await accepted(installation.api, UPDATE, { id: made.id, protocol: { tcp: { port } } })
    await installation.api.settled(made.id)
    await accepted(installation.api, DELETE, { id: made.id })
    await listed(cluster(), made, [])
    bindings.end()
    rules.end()
    const own = bindings.seen.filter(({ object }) => object.spec.vipAddress === vipOf(made))
    expect(own.map(({ object }) => object.metadata.generation)).toEqual(
      own.map(({ object }) => (object.metadata.deletionTimestamp ? 2 : 1)),
    )
    expect(new Set(own.map(({ object }) => object.spec.port))).toEqual(new Set([made.port, port]))
    for (const { object } of own) expect(object.spec.backendPort).toBe(object.spec.port)
    const last = Number(own.at(-1)?.object.metadata.resourceVersion)
    const asked = rules.seen.find(
      ({ object }) => isOf(made)(object) && object.metadata.deletionTimestamp !== undefined,
    )
    expect(own.at(-1)?.type).toBe('DELETED')
    expect(Number(asked?.object.metadata.resourceVersion)).toBeGreaterThan(last)
  })
})
