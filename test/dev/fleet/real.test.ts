import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type RunningFleet, startRealFleet } from '../../../dev/fleet/fleet.ts'
import { DEMO_CLUSTERS } from '../../../dev/fleet/layout.ts'
import type { RealApiServer } from '../../../dev/kube-real/server.ts'
import {
  BGP_ADVERTISEMENTS,
  DATA_PLANE_NAMESPACE,
  type KubeObject,
  NETWORK_RULES,
  type NetworkRule,
} from '../../../src/rules/objects.ts'
import { Recorder } from '../../clusters/recorder.ts'
import { REAL, realClusters, turn } from '../../support/clusters.ts'

const namespace = DATA_PLANE_NAMESPACE

describe.skipIf(!realClusters)(`a fleet with ${REAL}`, () => {
  let dataDir: string
  let giveBack: (() => void) | undefined
  let fleet: RunningFleet<RealApiServer> | undefined
  const start = async () => {
    fleet = await startRealFleet({ dataDir, clusters: DEMO_CLUSTERS.slice(0, 1) })
    return fleet.get('us-east-1-a')
  }
  beforeAll(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'fleet-real-'))
    giveBack = await turn()
  })
  afterAll(async () => {
    await fleet?.close()
    giveBack?.()
    await rm(dataDir, { recursive: true })
  })

  test('has a data plane that serves rules', async () => {
    const { cluster, endpoints } = await start()
    const [backend] = endpoints
    if (backend === undefined) throw new Error('the fleet has no endpoints')
    const recorder = new Recorder()
    const follow = cluster.follow<KubeObject>(BGP_ADVERTISEMENTS, { namespace }, recorder)
    await cluster.apply<NetworkRule>(NETWORK_RULES, {
      apiVersion: 'network.datumapis.com/v1alpha1',
      kind: 'NetworkRule',
      metadata: { name: 'served', namespace },
      spec: {
        vpcRef: backend.vpcId,
        vpcAttachmentRef: backend.attachmentId,
        vipAddresses: ['2001:db8::1'],
        protocol: 'tcp',
        port: 443,
        backends: [{ address: backend.address, port: 443 }],
      },
    })
    // One of each gateway.
    await recorder.until(() => follow.objects.size === 2)
    const [rule] = await cluster.list<NetworkRule>(NETWORK_RULES, { namespace })
    expect(rule?.status?.conditions).toMatchObject([{ type: 'Accepted', status: 'True' }])
  })

  test('has everything after a restart, and tells who wrote what', async () => {
    const before = fleet?.get('us-east-1-a')
    const [rule] = (await before?.cluster.list<NetworkRule>(NETWORK_RULES, { namespace })) ?? []
    await fleet?.close()
    const { cluster, server } = await start()
    const [kept] = await cluster.list<NetworkRule>(NETWORK_RULES, { namespace })
    expect(kept?.metadata.uid).toBe(rule?.metadata.uid)
    expect(server.token).toBe(before?.server.token)
    const lines = (await readFile(server.auditLog, 'utf8')).trimEnd().split('\n')
    const written = lines
      .map((line): { verb: string; objectRef: object; user: object } => JSON.parse(line))
      .find(({ objectRef }) => 'name' in objectRef && objectRef.name === 'served')
    expect(written).toMatchObject({ verb: 'patch', user: { username: 'admin' } })
  })
})
