import { describe, expect, it } from 'vitest'
import { EVENT_REASONS } from '../../src/domain/events/reasons.ts'
import { LINKS } from '../../src/domain/explain/explanation.ts'
import { isReason } from '../../src/rules/reasons.ts'
import { useInstallation } from '../support/installation.ts'
import { createSettled } from '../workers/scene.ts'
import { clusterFaults } from './explainClusterFaults.ts'
import { ownFaults } from './explainOwnFaults.ts'
import { CLUSTERS, explainScene, OPTIONS } from './explainScene.ts'
import { explained, explainedAs } from './explanations.ts'
import { CREATE, inputOf } from './operations.ts'

const installation = useInstallation(OPTIONS)
const { at, within } = explainScene(installation)
const FAULTS = [...ownFaults(installation), ...clusterFaults(installation)]

describe('explain', () => {
  it('finds nothing broken where everything holds, each link with its evidence', async () => {
    const made = await createSettled(installation, at('a', 'b'))
    const { reachable, steps } = await explainedAs(installation.api, made.id, null)
    expect(reachable).toBe(true)
    expect(steps.map(({ name }) => name)).toEqual(LINKS)
    for (const { status, remedy, evidence } of steps) {
      expect([status, remedy]).toEqual(['TRUE', null])
      expect(evidence.length).toBeGreaterThan(0)
    }
    expect(steps.find(({ name }) => name === 'Programmed')?.evidence).toHaveLength(2)
  })

  it.each(FAULTS)('names $broken.name / $broken.reason for $fault', async (row) => {
    const { id, undo } = await row.inject()
    try {
      const told = await explainedAs(installation.api, id, row.broken)
      expect(told.reachable).toBe(row.reachable ?? false)
      expect(told.firstBroken?.remedy).toMatch(/\w/)
      expect(told.firstBroken?.evidence).not.toEqual([])
      for (const { status, remedy, reason } of told.steps) {
        expect(remedy === null).toBe(status === 'TRUE')
        expect(isReason(reason)).toBe(true)
      }
      // Names of clusters, and of nodes, which hold them.
      for (const { name } of Object.values(CLUSTERS)) {
        expect(JSON.stringify(told)).not.toContain(name)
      }
      const evidenceNow = async () =>
        (await explained(installation.operators, id, 'operators')).firstBroken?.evidence ?? []
      const evidence = await evidenceNow()
      if (row.evidence) {
        // A probe that was under way when it began may have failed of something else.
        await expect
          .poll(async () => (await evidenceNow()).map(({ value }) => value))
          .toContainEqual(expect.stringMatching(row.evidence))
      }
      const ofClusters = ['RuleApplied', 'DataPlaneAccepted', 'Programmed', 'Advertised']
      if (ofClusters.includes(row.broken.name)) {
        expect(evidence.map(({ cluster }) => cluster)).toContainEqual(expect.any(String))
      }
    } finally {
      await undo?.()
    }
  })

  it('of a load balancer that was never made: the refusal says why, and what to do', async () => {
    const full = { ...within('lonely') }
    await installation.store.pool.query(
      `UPDATE address_pool_counter SET next = 1000 WHERE pool_id = (SELECT id FROM address_pool WHERE name = 'north6')`,
    )
    const answer = await installation.api.get(CREATE, {
      input: inputOf(installation, { name: 'one-too-many', backends: [], ...full }),
    })
    expect(answer).toMatchObject({
      __typename: 'PoolExhausted',
      code: 'POOL_EXHAUSTED',
      hint: expect.stringMatching(/another region/),
    })
  })

  it('and all else says only what is listed, after all of these faults', async () => {
    const condition = 'reason'
    const { nodes } = await installation.operators.get<{
      nodes: {
        status: { conditions: Told[] }
        addresses: { status: { conditions: Told[] } }[]
        backends: { nodes: { resolved: Told; health: Told }[] }
        placements: { conditions: Told[] }[]
      }[]
    }>(`{ loadBalancers(first: 100) { nodes { status { conditions { ${condition} } }
      addresses { status { conditions { ${condition} } } }
      backends(first: 10) { nodes { resolved { ${condition} } health { reason } } }
      placements { conditions { ${condition} } } } } }`)
    const said = nodes.flatMap(({ status, addresses, backends, placements }) => [
      ...status.conditions,
      ...addresses.flatMap((each) => each.status.conditions),
      ...backends.nodes.flatMap(({ resolved, health }) => [resolved, health]),
      ...placements.flatMap(({ conditions }) => conditions),
    ])
    expect(said.length).toBeGreaterThan(200)
    expect(said.filter(({ reason }) => !isReason(reason))).toEqual([])
    const events = await installation.store.prisma.event.findMany({ distinct: ['reason'] })
    expect(events.length).toBeGreaterThan(8)
    expect(events.filter(({ reason }) => !Object.hasOwn(EVENT_REASONS, reason))).toEqual([])
  })
})

type Told = { reason: string }
