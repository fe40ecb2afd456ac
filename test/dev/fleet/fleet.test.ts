import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { locateByFile } from '../../../dev/fleet/addressMap.ts'
import { type RunningFleet, startFleet } from '../../../dev/fleet/fleet.ts'
import { Fleet } from '../../../src/clusters/fleet.ts'
import { Kubeconfig } from '../../../src/clusters/kubeconfig.ts'
import {
  DATA_PLANE_NAMESPACE,
  NAMESPACES,
  NETWORK_RULES,
  type NetworkRule,
  PROJECT_LABEL,
  VPC_ATTACHMENTS,
  VPCS,
  type Vpc,
  type VpcAttachment,
} from '../../../src/rules/objects.ts'
import { DirectProber } from '../../../src/workers/probe/directProber.ts'

const signal = new AbortController().signal

let fleet: RunningFleet
beforeAll(async () => {
  fleet = await startFleet()
})
afterAll(() => fleet.close())

test('the demo has two regions of two clusters, each with its own API server', () => {
  const regions = [...fleet.clusters.values()].map(({ layout }) => [layout.name, layout.region])
  expect(regions).toEqual([
    ['us-east-1-a', 'us-east-1'],
    ['us-east-1-b', 'us-east-1'],
    ['us-west-1-a', 'us-west-1'],
    ['us-west-1-b', 'us-west-1'],
  ])
  const ports = new Set([...fleet.clusters.values()].map(({ server }) => server.port))
  expect(ports.size).toBe(4)
})

test('the kubeconfig opens every cluster by its name, and nobody else may read it', async () => {
  expect((await stat(fleet.kubeconfig)).mode & 0o777).toBe(0o600)
  const kubeconfig = await Kubeconfig.open(fleet.kubeconfig, { onProblem: fail, pollMs: 0 })
  const opened = new Fleet(kubeconfig, { onHandlerError: fail })
  for (const name of fleet.clusters.keys()) {
    const namespaces = await opened.get({ name, context: name }).list(NAMESPACES)
    expect(namespaces.map(({ metadata }) => metadata.name)).toContain(DATA_PLANE_NAMESPACE)
  }
  await opened.close()
})

test('each project has one VPC with the same id in every cluster, told by a label as its own', async () => {
  for (const { cluster } of fleet.clusters.values()) {
    const vpcs = await cluster.list<Vpc>(VPCS)
    const ids = vpcs.map(({ metadata, status }) => [metadata.namespace, status?.vpc])
    expect(ids.sort()).toEqual(fleet.projects.map(({ name, vpcId }) => [name, vpcId]).sort())
    const namespaces = await cluster.list(NAMESPACES)
    for (const { name } of fleet.projects) {
      const found = namespaces.find(({ metadata }) => metadata.name === name)
      expect(found?.metadata.labels?.[PROJECT_LABEL]).toBe(`cluster-${name}`)
    }
  }
})

test('each project has four endpoints per region, two in each cluster, each with its own address and node', async () => {
  for (const { name } of fleet.projects) {
    for (const region of ['us-east-1', 'us-west-1']) {
      const endpoints = fleet.endpointsOf(name, region)
      expect(endpoints).toHaveLength(4)
      expect(new Set(endpoints.map(({ cluster }) => cluster)).size).toBe(2)
    }
  }
  expect(new Set(fleet.endpoints.map(({ address }) => address)).size).toBe(16)
  expect(new Set(fleet.endpoints.map(({ node }) => node)).size).toBe(16)
  for (const { cluster, endpoints } of fleet.clusters.values()) {
    const attachments = await cluster.list<VpcAttachment>(VPC_ATTACHMENTS)
    const seen = attachments.map(({ spec, status }) => [spec.interface.addresses, status?.node])
    expect(seen.sort()).toEqual(endpoints.map(({ cidr, node }) => [[cidr], node]).sort())
  }
})

test('every endpoint answers on whatever port is probed, and refuses while it is stopped', async () => {
  const prober = new DirectProber({ locate: locateByFile(fleet.addressMap) })
  const probe = async (address: string, port = 80) =>
    (await prober.connect(address, port, 5_000, signal)).ok
  for (const { address } of fleet.endpoints) expect(await probe(address)).toBe(true)
  const [endpoint] = fleet.endpoints
  if (endpoint === undefined) throw new Error('no endpoint')
  expect(await probe(endpoint.address, 4711)).toBe(true)
  await endpoint.stop()
  expect(await probe(endpoint.address)).toBe(false)
  await endpoint.start()
  expect(await probe(endpoint.address)).toBe(true)
  expect(await probe('fd20:1:0:9::1')).toBe(false)
})

test.each([
  ['fail', true, 'UnexpectedStatus'],
  ['hang', true, 'TimedOut'],
  ['reset', true, 'Reset'],
  ['slow', true, 'TimedOut'],
  ['refuse', false, 'Refused'],
])(
  'an endpoint that is switched to %s is probed so, and answers again',
  async (word, ...expected) => {
    const prober = new DirectProber({ locate: locateByFile(fleet.addressMap) })
    const { address } = fleet.endpoints[1] ?? { address: '' }
    const question = {
      ...{ scheme: 'HTTP' as const, host: null, path: '/', verifyCertificate: false },
      expectedStatuses: [{ from: 200, to: 399 }],
    }
    const probe = async () => {
      const asked = await prober.http(address, 80, question, 500, signal)
      return [
        (await prober.connect(address, 80, 5_000, signal)).ok,
        asked.ok ? 'answered' : asked.reason,
      ]
    }
    await writeFile(fleet.behaviours, JSON.stringify({ [address]: word, other: 'fail' }))
    await expect.poll(probe, { timeout: 10_000 }).toEqual(expected)
    await writeFile(fleet.behaviours, '{}')
    await expect.poll(probe, { timeout: 10_000 }).toEqual([true, 'answered'])
  },
)

test('endpoints answer while the file that switches them is away, and are switched when it is back', async () => {
  const prober = new DirectProber({ locate: locateByFile(fleet.addressMap) })
  const { address } = fleet.endpoints[0] ?? { address: '' }
  const answers = async () => (await prober.connect(address, 80, 5_000, signal)).ok
  for (const connected of [false, true, false]) {
    if (connected) await rm(fleet.behaviours)
    else await writeFile(fleet.behaviours, JSON.stringify({ [address]: 'refuse' }))
    await expect.poll(answers, { timeout: 10_000 }).toBe(connected)
  }
  await writeFile(fleet.behaviours, '{}')
  await expect.poll(answers, { timeout: 10_000 }).toBe(true)
})

test('an endpoint answers a request with HTTP 200', async () => {
  const [endpoint] = fleet.endpoints
  const answer = await fetch(`http://127.0.0.1:${endpoint?.listener}/`)
  expect([answer.status, await answer.text()]).toEqual([200, 'ok\n'])
})

test('a fleet finds its objects again when it is started again', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'lasting-'))
  const clusters = [{ name: 'c1', region: 'r1', servesIPv4: false }]
  const first = await startFleet({ dataDir, clusters })
  const [endpoint] = first.endpointsOf('demo')
  await first.get('c1').cluster.apply<NetworkRule>(NETWORK_RULES, {
    apiVersion: 'network.datumapis.com/v1alpha1',
    kind: 'NetworkRule',
    metadata: { name: 'r', namespace: DATA_PLANE_NAMESPACE },
    spec: {
      vpcRef: endpoint?.vpcId ?? '',
      vpcAttachmentRef: 'a',
      vipAddresses: ['2001:db8::1'],
      protocol: 'tcp',
      port: 80,
      backends: [{ address: endpoint?.address ?? '', port: 80 }],
    },
  })
  const uids = await uidsIn(first)
  await first.close()
  const second = await startFleet({ dataDir, clusters })
  expect(await uidsIn(second)).toEqual(uids)
  await second.close()
  await rm(dataDir, { recursive: true })
})

async function uidsIn(running: RunningFleet): Promise<(string | undefined)[]> {
  const { cluster } = running.get('c1')
  const kinds = [NETWORK_RULES, VPCS, VPC_ATTACHMENTS, NAMESPACES]
  const objects = await Promise.all(kinds.map((kind) => cluster.list(kind)))
  return objects
    .flat()
    .map(({ metadata }) => metadata.uid)
    .sort()
}

function fail(error: unknown): void {
  throw error
}
