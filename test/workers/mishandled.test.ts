import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { VPC_ATTACHMENTS } from '../../src/rules/objects.ts'
import { accepted, REMOVE_BACKENDS } from '../api/operations.ts'
import { bareEnvironment } from '../support/environment.ts'
import { useInstallation } from '../support/installation.ts'
import { rulesUntil } from '../support/objects.ts'
import { freePort } from '../telemetry/processes.ts'
import { scrape } from '../telemetry/scrape.ts'
import { attach, create, createSettled, isOf, known, listed, storeId } from './scene.ts'

const NAME = 'us-east-1-a'
const program = fileURLToPath(new URL('../../dev/worker.ts', import.meta.url))

type Line = Record<string, unknown> & { level: number; msg: string }
const lines: Line[] = []
const metricsPort = await freePort()

const installation = useInstallation({
  clusters: [{ name: NAME, region: 'us-east-1', servesIPv4: false }],
  endpointsPerCluster: 3,
  workers: ({ databaseUrl, kubeconfig, addressMap }) => {
    const child: ChildProcess = fork(program, [addressMap], {
      execArgv: [],
      stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
      env: {
        ...bareEnvironment(),
        DATABASE_URL: databaseUrl,
        KUBECONFIG: kubeconfig,
        HOST: '127.0.0.1',
        METRICS_PORT: String(metricsPort),
        LOG_LEVEL: 'warn',
      },
    })
    if (child.stdout !== null)
      createInterface({ input: child.stdout }).on('line', (line) => lines.push(JSON.parse(line)))
    const close = async () => {
      child.disconnect()
      await once(child, 'exit')
    }
    return { renew: async () => undefined, close }
  },
})
const cluster = () => installation.fleet.get(NAME)
const count = async (name: string, labels: Record<string, string>): Promise<number> =>
  (await scrape(`http://127.0.0.1:${metricsPort}`)).value(name, { cluster: NAME, ...labels }) ?? 0

describe('a mistake in handling', () => {
  it('one load balancer is logged, counted and tried again with that one alone', async () => {
    const [first = '', second = '', third = ''] = installation.addresses(NAME)
    const made = await createSettled(installation, [first, second])
    const failed = () => count('nlb_reconcile_seconds_count', { outcome: 'failed' })
    const before = await failed()
    const { pool } = installation.store
    // What is reported of it can't be stored.
    await pool.query(`CREATE FUNCTION refuse_one() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN RAISE EXCEPTION 'a mistake'; END $$`)
    await pool.query(`CREATE TRIGGER refuse_one BEFORE UPDATE ON placement FOR EACH ROW
      WHEN (NEW.load_balancer_id = '${storeId(made.id)}' AND NEW.report IS DISTINCT FROM OLD.report)
      EXECUTE FUNCTION refuse_one()`)
    const remove = { loadBalancer: made.id, addresses: [second] }
    await accepted(installation.api, REMOVE_BACKENDS, remove)
    await expect.poll(failed).toBeGreaterThanOrEqual(before + 3)
    const told = lines.filter(({ msg }) => msg === 'a placement could not be brought closer')
    expect(told.length).toBeGreaterThanOrEqual(3)
    expect(new Set(told.map(({ loadBalancer }) => loadBalancer))).toEqual(
      new Set([storeId(made.id)]),
    )
    // The others go on meanwhile.
    await createSettled(installation, [third])
    await pool.query('DROP TRIGGER refuse_one ON placement')
    await installation.api.settled(made.id)
    await listed(cluster(), made, [first])
  })

  it('one object of a cluster is logged, counted and tried again with that one alone', async () => {
    // What stands in for the data plane doesn't know such attachments either.
    await cluster().dataPlane.close()
    const definition = await readFile(
      new URL('../../dev/crds/vpcattachments.yaml', import.meta.url),
      'utf8',
    )
    const another = definition
      .replace(
        /items:\s+type: string\s+maxLength: 64/,
        'items: {type: object, x-kubernetes-preserve-unknown-fields: true}',
      )
      .replace(/x-kubernetes-validations:\s+- rule: .*\s+message: .*/, '')
    const { storage } = cluster().server
    storage.setCrd(another)
    const where = { name: 'unforeseen', namespace: 'demo' }
    await cluster().writer.create(VPC_ATTACHMENTS, {
      metadata: where,
      spec: { vpc: { name: 'demo-vpc' }, interface: { addresses: [{ cidr: 'fd20:1::99/128' }] } },
    })
    const status = { vpc: '5dEmo1', vpcAttachment: 'unforeseen', node: 'somewhere' }
    await cluster().writer.patchStatus(VPC_ATTACHMENTS, where, { status })
    const mishandled = () => count('nlb_mishandled_total', { kind: 'vpcattachments' })
    await expect.poll(mishandled).toBeGreaterThanOrEqual(3)
    const told = lines.filter(({ object }) => object !== undefined)
    expect(told.length).toBeGreaterThanOrEqual(3)
    for (const line of told)
      expect(line).toMatchObject({
        cluster: NAME,
        kind: 'vpcattachments',
        object: 'demo/unforeseen',
        err: { type: 'TypeError' },
      })
    // The others go on meanwhile.
    storage.setCrd(definition)
    await attach(cluster(), { addresses: ['fd20:1::98'] })
    const made = await create(installation, ['fd20:1::98', 'fd20:1::99'])
    await rulesUntil(cluster(), (all) => all.some(isOf(made)))
    await known(installation, 'fd20:1::99', [])
    const patch = { spec: { interface: { addresses: ['fd20:1::99/128'] } } }
    await cluster().writer.patch(VPC_ATTACHMENTS, where, patch)
    await listed(cluster(), made, ['fd20:1::98', 'fd20:1::99'])
    const counted = await mishandled()
    await known(installation, 'fd20:1::99', [NAME])
    expect(await mishandled()).toBe(counted)
  })
})
