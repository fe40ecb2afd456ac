import { afterEach, describe, expect, it } from 'vitest'
import { startListener } from '../../dev/fleet/listeners.ts'
import { forgetReachability } from '../../src/domain/reachability/refold.ts'
import { DirectProber } from '../../src/workers/probe/directProber.ts'
import { vantageApi } from '../../src/workers/vantage/api.ts'
import { startVantage } from '../../src/workers/vantage/vantage.ts'
import { accepted, type LoadBalancer, UPDATE } from '../api/operations.ts'
import { tell } from '../api/operators.ts'
import { useInstallation } from '../support/installation.ts'
import { condition, createSettled, shown, storedUntil, vipOf } from './scene.ts'

const installation = useInstallation({
  clusters: [{ name: 'us-east-1-a', region: 'us-east-1', servesIPv4: false }],
})
const settled = () => createSettled(installation, installation.addresses('us-east-1-a'))
const quiet = () => undefined

/** Where connections to virtual addresses go, as routers outside decide it. */
const routes = new Map<string, number>()
const running: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const each of running.splice(0)) await each.close()
  routes.clear()
  await installation.store.pool.query('DELETE FROM reachability')
})

function stand(name: string, warned: string[] = []) {
  const prober = new DirectProber({
    locate: async (address) => {
      const port = routes.get(address)
      return port === undefined ? undefined : { host: '127.0.0.1', port }
    },
  })
  const vantage = startVantage({
    api: vantageApi(installation.operators.url, undefined),
    name,
    interval: 100,
    connect: (...probe) => prober.connect(...probe),
    log: { info: quiet, warn: (_, message) => void warned.push(message) },
  })
  running.push(vantage)
  return vantage
}

const reachable = (made: LoadBalancer, reason: string) =>
  shown(installation, made, (now) => condition(now, 'Reachable')?.reason === reason)

describe('a vantage point', () => {
  it('says of each address whether connections come through, and again when that changes', async () => {
    const gate = await startListener()
    const made = await settled()
    await reachable(made, 'NotProbed')
    routes.set(vipOf(made), gate.port)
    stand('oslo')
    const open = await reachable(made, 'Probed')
    expect(open.addresses[0]?.status.reachable).toEqual({ status: 'TRUE', reason: 'Probed' })
    await gate.stop()
    const shut = await reachable(made, 'ProbeFailed')
    expect(condition(shut, 'Reachable')?.status).toBe('FALSE')
    expect(condition(shut, 'Ready')?.status).toBe('TRUE')
    await gate.start()
    await reachable(made, 'Probed')
    await gate.stop()
  })

  it('tries the port that a load balancer has now, and neither UDP nor what is being deleted', async () => {
    const gate = await startListener()
    const made = await settled()
    const udp = await createSettled(installation, [], { protocol: { udp: { port: 53 } } })
    for (const each of [made, udp]) routes.set(vipOf(each), gate.port)
    const port = made.port + 1_000
    await accepted(installation.api, UPDATE, { id: made.id, protocol: { tcp: { port } } })
    await installation.api.settled(made.id)
    stand('oslo')
    await reachable(made, 'Probed')
    const { rows } = await installation.store.pool.query(
      'SELECT port FROM reachability WHERE address = ANY ($1::inet[])',
      [[vipOf(made), vipOf(udp)]],
    )
    expect(rows).toEqual([{ port }])
    await gate.stop()
  })

  it('that falls silent is not believed for longer than a minute', async () => {
    const made = await settled()
    const report = (seconds: number, reachable: boolean) =>
      tell(installation.operators, 'reportReachability', {
        vantage: 'lima',
        results: [
          {
            address: vipOf(made),
            port: made.port,
            reachable,
            at: new Date(Date.now() - 1_000 * seconds).toISOString(),
          },
        ],
      })
    await report(0, false)
    await reachable(made, 'ProbeFailed')
    expect(await forgetReachability(installation.store)).toBe(0)
    // As if a minute passed.
    await installation.store.pool.query(`UPDATE reachability SET at = at - interval '60 seconds'`)
    expect(await forgetReachability(installation.store)).toBe(1)
    await reachable(made, 'NotProbed')
    await report(120, false)
    await reachable(made, 'NotProbed')
  })

  it('among others that see otherwise leaves it unknown', async () => {
    const made = await settled()
    const report = (vantage: string, reachable: boolean) => {
      const at = new Date().toISOString()
      const result = { address: vipOf(made), port: made.port, reachable, at }
      return tell(installation.operators, 'reportReachability', { vantage, results: [result] })
    }
    await report('oslo', true)
    await reachable(made, 'Probed')
    await report('lima', false)
    await reachable(made, 'VantagesDisagree')
    await report('lima', true)
    await reachable(made, 'Probed')
  })

  it('that repeats itself makes no event', async () => {
    const made = await settled()
    const gate = await startListener()
    routes.set(vipOf(made), gate.port)
    stand('oslo')
    await reachable(made, 'Probed')
    const version = async () =>
      (
        await installation.store.prisma.loadBalancer.findFirstOrThrow({
          where: { name: made.name },
        })
      ).version
    const before = await version()
    const seen = () => installation.store.prisma.reachability.findFirstOrThrow()
    const first = await seen()
    await storedUntil(seen, ({ at }) => at.getTime() > first.at.getTime() + 300)
    expect(await version()).toBe(before)
    await gate.stop()
  })

  it('to which nothing comes through at all reports nothing', async () => {
    for (let count = 0; count < 10; count += 1) await createSettled(installation, [])
    const made = await settled()
    const warned: string[] = []
    stand('cut-off', warned)
    await expect.poll(() => warned).toContain('nothing came through, so nothing is reported')
    expect(await installation.store.prisma.reachability.count()).toBe(0)
    await reachable(made, 'NotProbed')
  })
})
