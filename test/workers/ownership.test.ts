import { describe, expect, it } from 'vitest'
import { NAMESPACES, PROJECT_LABEL, VPCS } from '../../src/rules/objects.ts'
import { ADD_BACKENDS, CREATE, inputOf } from '../api/operations.ts'
import { clusterCalled } from '../api/operators.ts'
import { useInstallation } from '../support/installation.ts'
import { rulesIn } from '../support/objects.ts'
import { createSettled, isOf, shown, storedUntil } from './scene.ts'

const installation = useInstallation({
  clusters: ['a', 'b'].map((letter) => ({
    name: `us-east-1-${letter}`,
    region: 'us-east-1',
    servesIPv4: false,
  })),
})
const cluster = (letter: string) => installation.fleet.get(`us-east-1-${letter}`)
const label = (letter: string, value: string | null, project = 'demo') =>
  cluster(letter).writer.patch(
    NAMESPACES,
    { name: project },
    { metadata: { labels: { [PROJECT_LABEL]: value } } },
  )
const vpcUntil = (owned: boolean, ref = '5dEmo1') =>
  storedUntil(
    () => installation.store.prisma.vpc.findUniqueOrThrow({ where: { ref } }),
    (vpc) => vpc.owned === owned,
  )
const refused = async (operation: string, input: Record<string, unknown>) => {
  const answer = await installation.api.get<{ __typename: string; code?: string }>(operation, {
    input,
  })
  return [answer.__typename, answer.code]
}

let names = 0
const attempt = () => {
  names += 1
  return refused(
    CREATE,
    inputOf(installation, {
      name: `try-${names}`,
      protocol: { tcp: { port: names } },
      backends: [],
    }),
  )
}

describe('a VPC', () => {
  it("that loses its label is nobody's: changes are refused, running rules stay", async () => {
    const [address = ''] = installation.addresses('us-east-1-a')
    const made = await createSettled(installation, [address])
    expect((await attempt())[0]).toBe('CreateLoadBalancerPayload')
    await label('a', null)
    await label('b', null)
    await vpcUntil(false)
    expect(await attempt()).toEqual(['Refused', 'VPC_NOT_OWNED'])
    const [, other = ''] = installation.addresses('us-east-1-a')
    expect(
      await refused(ADD_BACKENDS, { loadBalancer: made.id, backends: [{ address: other }] }),
    ).toEqual(['Refused', 'VPC_NOT_OWNED'])
    expect((await rulesIn(cluster('a'))).filter(isOf(made))).toHaveLength(1)
    await shown(installation, made, ({ status }) => status.phase === 'ACTIVE')
    await label('a', 'cluster-demo')
    await label('b', 'cluster-demo')
    await vpcUntil(true)
    expect((await attempt())[0]).toBe('CreateLoadBalancerPayload')
  })

  it('that loses its label as all of a cluster do empties no rule: it is told, until they have them back', async () => {
    const [mine = ''] = installation.addresses('us-east-1-a')
    const [theirs = ''] = installation.addresses('us-east-1-a', 'other')
    const { other, vpc } = installation
    await createSettled(installation, [mine])
    await createSettled({ api: other, vpc: () => vpc('other') }, [theirs])
    const rules = async () =>
      (await rulesIn(cluster('a'))).map(({ metadata: { uid, generation } }) => [uid, generation])
    const endpoints = () => installation.store.prisma.endpoint.count()
    const before = { rules: await rules(), endpoints: await endpoints() }
    const inventoryUntil = (status: string, reason: string) =>
      Promise.all(
        ['us-east-1-a', 'us-east-1-b'].map((name) =>
          expect
            .poll(async () => (await clusterCalled(installation.operators, name)).inventory)
            .toEqual({ status, reason }),
        ),
      )
    const labelAll = (value: (project: string) => string | null) =>
      Promise.all(
        ['a', 'b'].flatMap((letter) =>
          ['demo', 'other'].map((project) => label(letter, value(project), project)),
        ),
      )
    await inventoryUntil('TRUE', 'InventoryComplete')
    await labelAll(() => null)
    await inventoryUntil('FALSE', 'VpcsUnlabelled')
    await Promise.all([vpcUntil(false), vpcUntil(false, '5oTher1')])
    expect(await attempt()).toEqual(['Refused', 'VPC_NOT_OWNED'])
    // Also by a worker that begins meanwhile.
    await installation.restartWorkers()
    await installation.store.pool.query(
      'UPDATE placement SET asked = asked + 1, due = clock_timestamp()',
    )
    await storedUntil(
      () => installation.store.pool.query('SELECT 1 FROM placement WHERE applied < asked'),
      ({ rowCount }) => rowCount === 0,
    )
    await inventoryUntil('FALSE', 'VpcsUnlabelled')
    expect({ rules: await rules(), endpoints: await endpoints() }).toEqual(before)
    await labelAll((project) => `cluster-${project}`)
    await inventoryUntil('TRUE', 'InventoryComplete')
    await Promise.all([vpcUntil(true), vpcUntil(true, '5oTher1')])
    expect((await attempt())[0]).toBe('CreateLoadBalancerPayload')
  })

  it("that all clusters say is another project's takes no more backends from the one before", async () => {
    const [address = '', other = ''] = installation.addresses('us-east-1-b')
    const made = await createSettled(installation, [address])
    await label('a', 'cluster-other')
    await label('b', 'cluster-other')
    await storedUntil(
      () => installation.store.prisma.vpc.findUniqueOrThrow({ where: { ref: '5dEmo1' } }),
      ({ owned, project }) => owned && project === 'other',
    )
    expect(
      await refused(ADD_BACKENDS, { loadBalancer: made.id, backends: [{ address: other }] }),
    ).toEqual(['Refused', 'VPC_NOT_OWNED'])
    expect((await rulesIn(cluster('b'))).filter(isOf(made))).toHaveLength(1)
    await label('a', 'cluster-demo')
    await label('b', 'cluster-demo')
    await storedUntil(
      () => installation.store.prisma.vpc.findUniqueOrThrow({ where: { ref: '5dEmo1' } }),
      ({ owned, project }) => owned && project === 'demo',
    )
  })

  it.each([
    ['says another project', 'cluster-other'],
    ['says none', null],
    ['says something that is no project', 'demo'],
  ])("of which one cluster %s is nobody's until all agree", async (_, value) => {
    await label('b', value)
    await vpcUntil(false)
    expect(await attempt()).toEqual(['Refused', 'VPC_NOT_OWNED'])
    await label('b', 'cluster-demo')
    await vpcUntil(true)
  })

  it("is judged by its own label before its namespace's", async () => {
    const own = (value: string | null) =>
      cluster('a').writer.patch(
        VPCS,
        { namespace: 'demo', name: 'demo-vpc' },
        { metadata: { labels: { [PROJECT_LABEL]: value } } },
      )
    await own('cluster-other')
    await vpcUntil(false)
    await own('cluster-demo')
    await vpcUntil(true)
    await own(null)
  })

  it("that was never labelled is nobody's", async () => {
    await cluster('a').writer.create(NAMESPACES, { metadata: { name: 'unlabelled' } })
    await cluster('a').writer.create(VPCS, {
      metadata: { name: 'wild', namespace: 'unlabelled' },
      spec: { networks: ['fd20:99::/48'] },
    })
    await cluster('a').writer.patchStatus(
      VPCS,
      { namespace: 'unlabelled', name: 'wild' },
      { status: { vpc: '5wild' } },
    )
    const vpc = await storedUntil(
      () => installation.store.prisma.vpc.findUnique({ where: { ref: '5wild' } }),
      (found) => found !== null,
    )
    expect(vpc).toMatchObject({ owned: false, project: null })
  })

  it("that no cluster shows any more is nobody's", async () => {
    for (const letter of ['a', 'b'])
      await cluster(letter).writer.remove(VPCS, { namespace: 'other', name: 'other-vpc' })
    await vpcUntil(false, '5oTher1')
  })

  it("that is seen when a worker begins is no less its project's meanwhile", async () => {
    const seen: boolean[] = []
    const look = setInterval(() => {
      void installation.store.prisma.vpc
        .findUniqueOrThrow({ where: { ref: '5dEmo1' } })
        .then(({ owned }) => seen.push(owned))
    }, 5)
    await installation.restartWorkers()
    const [address = ''] = installation.addresses('us-east-1-a')
    await createSettled(installation, [address], { protocol: { udp: { port: 9 } } })
    clearInterval(look)
    expect(new Set(seen)).toEqual(new Set([true]))
  })
})
