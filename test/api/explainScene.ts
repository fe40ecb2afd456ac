import type { Ruling } from '../support/gatekeeper.ts'
import type { Installation, InstallationOptions } from '../support/installation.ts'
import { create, createSettled, vipOf } from '../workers/scene.ts'
import { explainedAs, type Step } from './explanations.ts'
import { accepted, RESERVE, type Reservation } from './operations.ts'
import { clusterCalled, tell } from './operators.ts'

/** a and b are one region; probed has a prober; only served4 serves IPv4; small has two addresses. */
export const CLUSTERS = {
  a: { name: 'us-east-1-a', region: 'us-east-1', servesIPv4: false },
  b: { name: 'us-east-1-b', region: 'us-east-1', servesIPv4: false },
  served4: { name: 'us-west-1-a', region: 'us-west-1', servesIPv4: true },
  probed: { name: 'eu-south-1-a', region: 'eu-south-1', servesIPv4: false },
  lonely: { name: 'eu-north-1-a', region: 'eu-north-1', servesIPv4: false },
} as const
export type Where = keyof typeof CLUSTERS

export const OPTIONS: InstallationOptions = {
  guarded: true,
  clusters: Object.values(CLUSTERS),
  limits: { teardownPatience: 300, rereadSchema: 200 },
  pools: [
    { name: 'east6', region: 'us-east-1', prefix: '2001:db8:1::/64', skipFirstAndLast: true },
    { name: 'west6', region: 'us-west-1', prefix: '2001:db8:2::/64', skipFirstAndLast: true },
    { name: 'south6', region: 'eu-south-1', prefix: '2001:db8:3::/64', skipFirstAndLast: true },
    { name: 'north6', region: 'eu-north-1', prefix: '2001:db8:4::/120' },
    { name: 'east4', region: 'us-east-1', prefix: '198.51.100.0/30' },
    { name: 'west4', region: 'us-west-1', prefix: '203.0.113.0/24', skipFirstAndLast: true },
  ],
}

export type Fault = {
  fault: string
  inject(): Promise<{ id: string; undo?: () => unknown }>
  broken: Pick<Step, 'name' | 'status' | 'reason'>
  reachable?: boolean
  /** What operators must find among the evidence. */
  evidence?: RegExp
}
export const broken = (name: string, reason: string, status = 'FALSE') => ({ name, reason, status })

/** How an API server answers who lacks a right. */
export const no = (message: string): Ruling => ({
  status: 403,
  body: {
    kind: 'Status',
    apiVersion: 'v1',
    status: 'Failure',
    reason: 'Forbidden',
    code: 403,
    message,
  },
})

/** What faults are made of. */
export function explainScene(installation: Installation) {
  const cluster = (where: Where) => installation.fleet.get(CLUSTERS[where].name)
  const gate = (where: Where) => installation.gatekeeper(CLUSTERS[where].name)
  const at = (...where: Where[]) =>
    where.flatMap((each) => installation.addresses(CLUSTERS[each].name))
  const within = (where: Where) => ({ region: CLUSTERS[where].region })
  const settledAt = (where: Where, more: object = {}) =>
    createSettled(installation, at(where), { ...within(where), ...more })
  /** Refuses writes of one kind of object. */
  function forbid(where: Where, plural: string) {
    gate(where).rule(({ method, path }) =>
      method === 'PATCH' && path.includes(`/${plural}/`) ? no(`${plural} is forbidden`) : undefined,
    )
    return () => gate(where).rule(undefined)
  }

  /** A load balancer of which the data plane takes no step beyond the one that is held. */
  async function heldAt(step: 'accept' | 'advertise' | 'bind') {
    const { dataPlane } = cluster('a')
    dataPlane.pause()
    const made = await create(installation, at('a'))
    const release = dataPlane.hold(step, vipOf(made))
    dataPlane.resume()
    return { id: made.id, undo: release }
  }

  async function gatewaysSay(reason: string | undefined, count = 2) {
    for (const node of ['us-east-1-a-gateway-1', 'us-east-1-a-gateway-2'].slice(0, count))
      cluster('a').dataPlane.setGatewayReady(node, reason)
  }

  async function reserved(where: Where): Promise<Reservation> {
    reservations += 1
    const { reservation } = await accepted<{ reservation: Reservation }>(
      installation.api,
      RESERVE,
      {
        name: `reserved-${reservations}`,
        ...within(where),
      },
    )
    return reservation
  }
  let reservations = 0

  const everySecond = { intervalSeconds: 1, timeoutSeconds: 1, fall: 1, rise: 1 }
  async function stopped(count: number, more: object = {}) {
    const { id } = await clusterCalled(installation.operators, CLUSTERS.probed.name)
    await tell(installation.operators, 'updateCluster', { id, hasProber: true })
    const made = await settledAt('probed', { healthCheck: { ...everySecond, ...more } })
    await explainedAs(installation.api, made.id, null)
    const ends = cluster('probed').endpoints.filter(({ project }) => project === 'demo')
    for (const end of ends.slice(0, count)) await end.stop()
    return {
      id: made.id,
      undo: async () => {
        for (const end of ends.slice(0, count)) await end.start()
        await explainedAs(installation.api, made.id, null)
      },
    }
  }

  return { cluster, gate, at, within, settledAt, forbid, heldAt, gatewaysSay, reserved, stopped }
}
