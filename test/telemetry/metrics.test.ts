import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { CREATE, createLoadBalancer, DELETE, inputOf, type Refusal } from '../api/operations.ts'
import { clusterCalled, tell } from '../api/operators.ts'
import { useInstallation } from '../support/installation.ts'
import { PATIENCE } from '../support/patience.ts'
import { databaseAway, type Processes, startProcesses } from './processes.ts'
import { type Scrape, scrape } from './scrape.ts'

const installation = useInstallation({ workers: false })
let processes: Processes
beforeAll(async () => {
  processes = await startProcesses(installation)
})
afterAll(() => processes?.close())

const ofApi = () => scrape(processes.api.diagnostics ?? '')
const ofWorker = () => scrape(processes.workers.diagnostics ?? '')
const tenant = () => ({ vpc: installation.vpc, api: processes.demo })
const asks = (query: string, variables: Record<string, unknown> = {}) =>
  processes.demo.ask(query, variables)

async function until(
  read: () => Promise<Scrape>,
  holds: (now: Scrape) => boolean,
): Promise<Scrape> {
  let last = await read()
  await expect
    .poll(
      async () => {
        last = await read()
        return holds(last)
      },
      { interval: 100 },
    )
    .toBe(true)
  return last
}

/** How much a series grew by something that was done. */
async function growth(
  read: () => Promise<Scrape>,
  name: string,
  labels: Record<string, string>,
  work: () => Promise<unknown>,
): Promise<number> {
  const before = (await read()).value(name, labels) ?? 0
  await work()
  return ((await read()).value(name, labels) ?? 0) - before
}

/** The first column of the tables of docs/operate.md that list metrics of a process. */
function documented(process: 'API' | 'worker'): string[] {
  const text = readFileSync(new URL('../../docs/operate.md', import.meta.url), 'utf8')
  return [...text.matchAll(/^\| `(nlb_\w+)` +\| ([^|]*)\|/gm)]
    .filter(([, , where = '']) => where.includes(process))
    .map(([, name = '']) => name)
}

describe('a scrape', () => {
  it('of either process has every metric that is documented for it, and no other', async () => {
    const ours = ({ names }: Scrape) => [...names].filter((name) => name.startsWith('nlb_')).sort()
    expect(ours(await ofApi())).toEqual(documented('API').sort())
    expect(ours(await ofWorker())).toEqual(documented('worker').sort())
  })

  it('names clusters and pools, and nothing of tenants', async () => {
    const made = await createLoadBalancer(tenant(), {
      name: 'unspoken',
      protocol: { tcp: { port: 8_001 } },
      backends: installation.addresses('us-east-1').map((address) => ({ address })),
    })
    await processes.demo.settled(made.id)
    for (const { labels } of [await ofApi(), await ofWorker()]) {
      const said = [...labels.values()].flatMap((values) => [...values])
      expect(said.join(' ')).not.toMatch(/demo|other|unspoken|2001:db8:1::|fd20/)
      for (const values of labels.values()) expect(values.size).toBeLessThan(40)
    }
  })
})

describe('requests', () => {
  const count = (kind: string, outcome: string, work: () => Promise<unknown>) =>
    growth(ofApi, 'nlb_requests_total', { kind, outcome }, work)

  it('are counted by what they are and what came of them', async () => {
    expect(await count('query', 'ok', () => asks('{ regions { code } }'))).toBe(1)
    expect(
      await count('query', 'client_error', () =>
        asks('{ loadBalancers(first: 101) { totalCount } }'),
      ),
    ).toBe(1)
    expect(await count('none', 'client_error', () => asks('{ nonsense }'))).toBe(1)
    expect(
      await count('none', 'client_error', () =>
        fetch(`${processes.api.url}/projects/unheard/graphql`, { method: 'POST' }),
      ),
    ).toBe(1)
    const refused = () => asks(DELETE, { input: { id: 'nothing' } })
    expect(await count('mutation', 'refused', refused)).toBe(1)
    const mutation = { kind: 'mutation' }
    expect(await growth(ofApi, 'nlb_request_seconds_count', mutation, refused)).toBe(1)
  })

  it('over websockets are counted alike', async () => {
    const signal = AbortSignal.timeout(PATIENCE)
    const first = async (query: string) => {
      for await (const answer of processes.demo.stream(query, {}, { over: 'ws', signal }))
        return answer
      throw new Error('no answer came')
    }
    expect(await count('query', 'ok', () => first('{ regions { code } }'))).toBe(1)
    expect(
      await count('subscription', 'ok', () => first('subscription { loadBalancers { type } }')),
    ).toBe(1)
  })

  it('that are refused are counted by code', async () => {
    const invalid = inputOf(installation, { name: 'Not A Name' })
    const code = 'VALIDATION_FAILED'
    const answer = await growth(ofApi, 'nlb_refusals_total', { code }, async () => {
      const result = await processes.demo.get<Refusal>(CREATE, { input: invalid })
      expect(result.code).toBe(code)
    })
    expect(answer).toBe(1)
    const bad = { code: 'BAD_USER_INPUT' }
    expect(await growth(ofApi, 'nlb_refusals_total', bad, () => asks('{ nonsense }'))).toBe(1)
  })
})

describe('streams', () => {
  it('are counted while they are open, and events by how late they come', async () => {
    const ended = new AbortController()
    const events: string[] = []
    const watching = (async () => {
      const query = 'subscription { loadBalancers { type } }'
      const options = { over: 'sse' as const, signal: ended.signal }
      for await (const { type } of processes.demo.stream<{ type: string }>(query, {}, options)) {
        events.push(type)
      }
    })()
    await until(ofApi, (now) => now.value('nlb_open_streams') === 1)
    await expect.poll(() => events).toContain('SYNCED')
    const before = (await ofApi()).value('nlb_event_lag_seconds_count') ?? 0
    await createLoadBalancer(tenant(), { name: 'late', protocol: { tcp: { port: 8_002 } } })
    await until(ofApi, (now) => (now.value('nlb_event_lag_seconds_count') ?? 0) > before)
    const { value } = await ofApi()
    const mean =
      (value('nlb_event_lag_seconds_sum') ?? 0) / (value('nlb_event_lag_seconds_count') ?? 1)
    expect(mean).toBeGreaterThanOrEqual(0)
    expect(mean).toBeLessThan(10)
    ended.abort()
    await watching
    await until(ofApi, (now) => now.value('nlb_open_streams') === 0)
  })
})

describe('clusters', () => {
  it('are told with what they are asked for, how long it takes, and who serves them', async () => {
    const cluster = 'us-east-1-a'
    // Figures of the store are some seconds old at the most.
    const now = await until(
      ofWorker,
      (one) =>
        one.value('nlb_leases_held') === 4 &&
        one.value('nlb_cluster_owned', { cluster }) === 1 &&
        one.value('nlb_cluster_reachable', { cluster }) === 1,
    )
    expect(now.value('nlb_lease_renewals_total', { outcome: 'ok' })).toBeGreaterThan(0)
    for (const method of ['GET', 'WATCH', 'PATCH']) {
      const labels = { cluster, method, outcome: '2xx' }
      expect(now.value('nlb_cluster_call_seconds_count', labels), method).toBeGreaterThan(0)
    }
    expect(
      now.value('nlb_reconcile_seconds_count', { cluster, outcome: 'written' }),
    ).toBeGreaterThan(0)
    await until(ofWorker, (one) => (one.value('nlb_cluster_holds', { cluster }) ?? 0) > 0)
  })

  it('without a worker show what piles up and for how long, in what the API tells', async () => {
    await processes.workers.close()
    const made = await createLoadBalancer(tenant(), {
      name: 'waiting',
      protocol: { tcp: { port: 8_003 } },
      backends: installation.addresses('us-west-1').map((address) => ({ address })),
      region: 'us-west-1',
    })
    expect(made.status.phase).toBe('PENDING')
    const cluster = 'us-west-1-a'
    const now = await until(
      ofApi,
      (one) => (one.value('nlb_placements_oldest_seconds', { cluster }) ?? 0) > 1,
    )
    expect(now.value('nlb_placements_due', { cluster })).toBe(1)
    expect(now.value('nlb_placements_behind', { cluster })).toBe(1)
    expect(now.value('nlb_cluster_owned', { cluster })).toBe(0)
    await processes.api.close()
    processes = await startProcesses(installation)
    await processes.demo.settled(made.id)
    await until(ofApi, (one) => one.value('nlb_placements_due', { cluster }) === 0)
  })
})

describe('pools and probes', () => {
  it('tell how full pools are', async () => {
    const pool = { pool: 'east4', region: 'us-east-1', family: 'IPV4' }
    const before = await ofApi()
    expect(before.value('nlb_pool_size', pool)).toBe(254)
    expect(before.value('nlb_pool_used', pool)).toBe(0)
    await processes.demo.get(
      'mutation { createIPv4Reservation(input: { name: "one", region: "us-east-1" }) { __typename } }',
    )
    await until(ofApi, (now) => now.value('nlb_pool_used', pool) === 1)
  })

  it('tell what probes came to, once a prober stands', async () => {
    for (const name of ['us-east-1-a', 'us-east-1-b']) {
      const { id } = await clusterCalled(installation.operators, name)
      await tell(installation.operators, 'updateCluster', { id, hasProber: true })
    }
    const { id } = await processes.demo.get<{ id: string }>(
      '{ loadBalancerByName(region: "us-east-1", name: "unspoken") { id } }',
    )
    await processes.demo.get(
      `mutation ($id: ID!, $backends: [BackendInput!]!) { setBackends(input: { loadBalancer: $id, backends: $backends }) { __typename } }`,
      { id, backends: installation.addresses('us-east-1').map((address) => ({ address })) },
    )
    await until(ofWorker, (now) => (now.value('nlb_probes_total', { outcome: 'ok' }) ?? 0) > 0)
  })
})

describe('while the database is away', () => {
  const status = async (url: string | undefined, path: string) =>
    (await fetch(`${url}${path}`)).status
  const both = (path: string) =>
    Promise.all([
      status(processes.api.diagnostics, path),
      status(processes.workers.diagnostics, path),
    ])

  it('processes live and are not ready, and their metrics are still told; then they are again', {
    timeout: 60_000,
  }, async () => {
    await expect.poll(() => both('/readyz')).toEqual([200, 200])
    const back = await databaseAway(installation)
    try {
      await expect.poll(() => both('/readyz')).toEqual([503, 503])
      expect(await both('/livez')).toEqual([200, 200])
      expect((await (await fetch(`${processes.api.diagnostics}/readyz`)).text()).trim()).not.toBe(
        '',
      )
      const now = await until(ofApi, (one) => one.value('nlb_store_readable') === 0)
      expect(now.value('nlb_placements_due')).toBeUndefined()
      await until(
        ofWorker,
        (one) => (one.value('nlb_lease_renewals_total', { outcome: 'failed' }) ?? 0) > 0,
      )
    } finally {
      await back()
    }
    await expect.poll(() => both('/readyz')).toEqual([200, 200])
    await until(ofApi, (one) => one.value('nlb_store_readable') === 1)
  })
})
