import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { type AddressInfo, connect, createServer as createRelay, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { cutFirstAnswer } from '../support/cut.ts'
import { useInstallation } from '../support/installation.ts'
import { rulesIn } from '../support/objects.ts'
import { generate, go, hasGo, module, useProgram, WITHOUT_GO } from './program.ts'

type Shown = {
  id: string
  name: string
  displayName: string | null
  description: string | null
  labels: { key: string; value: string }[]
  protocolName: string
  ports: { from: number; to: number }[]
  sessionAffinity: string
  addresses: { address: string }[]
  backends: { nodes: { address: string }[] }
  deletionProtection: boolean
  generation: number
  status: { observedGeneration: number }
}
type Watched = { type: string; loadBalancer: { generation: number } | null }

if (!hasGo) process.stderr.write(`skipped: ${WITHOUT_GO}\n`)

describe.skipIf(!hasGo)('the Go client', () => {
  const installation = useInstallation()
  const program = useProgram()
  const endpoint = () => installation.api.url
  const lb = (...args: string[]) => program.run(endpoint(), args)
  const json = <T = Shown>(...args: string[]) => program.json<T>(endpoint(), args)
  const east = (name: string, ...more: string[]) =>
    json('create', name, '--region', 'us-east-1', '--port', '80', ...more)

  test('creates a load balancer and returns when it is in effect', {
    timeout: 60_000,
  }, async () => {
    const [one = '', two = ''] = installation.addresses('us-east-1')
    const made = await east('web', '--backend', one, '--backend', two, '--wait', '--timeout', '20s')
    expect(made.status.observedGeneration).toBe(made.generation)
    expect(made.backends.nodes.map(({ address }) => address)).toEqual([one, two])
    expect(made.addresses).toHaveLength(1)
  })

  test('says what is missing, and ends with 3 when it takes too long', async () => {
    await installation.workers.close()
    onTestFinished(() => installation.restartWorkers())
    const [address = ''] = installation.addresses('us-east-1')
    const args = ['create', 'late', '--region', 'us-east-1', '--port', '80', '--backend', address]
    const { code, err } = await lb(...args, '--wait', '--timeout', '1s')
    expect(code).toBe(3)
    expect(err).toContain('waiting: Provisioned is ')
  })

  test('lists all of them, and shows one by its name', async () => {
    const made = await east('listed')
    const { code, out } = await lb('list')
    expect(code).toBe(0)
    expect(out).toMatch(/^listed +us-east-1 +TCP 80 +2001:db8:1:\S+ +\w+ +0\/0$/m)
    expect(await json('get', 'listed')).toMatchObject({ id: made.id, name: 'listed' })
    expect((await lb('get', '--id', made.id)).out).toMatch(/^Name: +listed$/m)
  })

  test('an update keeps whatever it does not name', async () => {
    const [backend = ''] = installation.addresses('us-east-1')
    const options = ['--description', 'Sells', '--label', 'team=shop', '--affinity', 'client-ip']
    const made = await east('kept', ...options, '--backend', backend, '--protect')
    expect(made.sessionAffinity).toBe('CLIENT_IP')
    const changed = await json('update', 'kept', '--display-name', 'Shop')
    const { displayName, generation } = changed
    expect([displayName, generation]).toEqual(['Shop', made.generation + 1])
    for (const field of ['description', 'labels', 'sessionAffinity', 'ports', 'addresses'] as const)
      expect(changed[field]).toEqual(made[field])
    expect(changed.deletionProtection).toBe(true)
    expect(changed.backends.nodes.map(({ address }) => address)).toEqual([backend])
    expect((await json('update', 'kept')).generation).toBe(generation)
    const reset = await json('update', 'kept', '--reset', 'display-name', '--protect=false')
    expect(reset).toMatchObject({ displayName: null, description: 'Sells' })
  })

  test('a change of the port alone keeps the protocol', async () => {
    const made = await east('moved', '--protocol', 'udp')
    expect(made.protocolName).toBe('UDP')
    const { protocolName, ports } = await json('update', 'moved', '--port', '53')
    expect([protocolName, ports]).toEqual(['UDP', [{ from: 53, to: 53 }]])
  })

  test('a refusal is told with its code and what to do, and ends with 1', async () => {
    await east('taken')
    const again = await lb('create', 'taken', '--region', 'us-east-1', '--port', '80')
    expect(again).toMatchObject({ code: 1, out: '' })
    expect(again.err).toMatch(/^lb: refused: .+ \(NAME_TAKEN\)\nhint: ./)
    const options = ['--region', 'us-east-1', '--port', '80', '--backend', '::ffff:10.0.0.1']
    const invalid = await lb('create', 'invalid', ...options)
    expect(invalid.code).toBe(1)
    expect(invalid.err).toMatch(/ backends\.0\.address: .+\n +did you mean 10\.0\.0\.1\?/)
  })

  test('a command line that can not be meant ends with 2', async () => {
    for (const args of [[], ['mend'], ['create', 'web'], ['get'], ['list', '--pages', '2']])
      expect([args, (await lb(...args)).code]).toEqual([args, 2])
  })

  test('who is not known is told so, over HTTP and websockets', async () => {
    for (const command of ['list', 'watch']) {
      const env = { LB_TOKEN: 'made-up' }
      const { code, err } = await program.run(endpoint(), [command], env)
      expect([command, code]).toEqual([command, 1])
      expect(err).toMatch(/\((?:UNAUTHENTICATED|4401)\)/)
    }
  })

  test('a create whose answer was cut off still makes one load balancer', async () => {
    const cut = await cutFirstAnswer(endpoint(), 'createLoadBalancer')
    const args = ['create', 'cut', '--region', 'us-east-1', '--port', '80']
    const made = await program.json<Shown>(cut.url, args)
    expect(cut.answers()).toBe(2)
    const all = await json<Shown[]>('list', '--name', 'cut')
    expect(all.map(({ id }) => id)).toEqual([made.id])
  })

  test('watches until it is interrupted', async () => {
    await east('watched')
    const { lines, interrupt } = program.start(endpoint(), ['watch', 'watched', '-o', 'json'])
    const next = async () => JSON.parse((await lines.next()).value ?? 'null') as { type: string }
    const seen = async (type: string) => {
      for (;;) if ((await next()).type === type) return
    }
    await seen('SYNCED')
    await json('update', 'watched', '--display-name', 'Seen')
    await seen('MODIFIED')
    expect(await interrupt()).toBe(0)
  })

  test('a watch that lost its connection goes on where it was', async () => {
    await east('followed')
    const way = await breakableWay(endpoint())
    const { lines, interrupt } = program.start(way.url, ['watch', 'followed', '-o', 'json'])
    const seen: Watched[] = []
    const until = async (here: (event: Watched) => boolean) => {
      for (;;) {
        const event = JSON.parse((await lines.next()).value ?? 'null') as Watched
        seen.push(event)
        if (here(event)) return
      }
    }
    await until(({ type }) => type === 'SYNCED')
    way.cut()
    await json('update', 'followed', '--display-name', 'Meanwhile')
    await until(({ loadBalancer }) => loadBalancer?.generation === 2)
    // No fresh snapshot was needed.
    expect(seen.map(({ type }) => type)).not.toContain('RESYNC')
    expect(await interrupt()).toBe(0)
  })

  test('deletes a load balancer and returns when it is gone', { timeout: 60_000 }, async () => {
    const [address = ''] = installation.addresses('us-east-1')
    const { id, addresses } = await east('gone', '--backend', address, '--wait', '--timeout', '20s')
    expect(await lb('delete', 'gone', '--wait', '--timeout', '20s')).toMatchObject({
      code: 0,
      out: 'deleted\n',
    })
    expect(await lb('get', '--id', id)).toMatchObject({ code: 1 })
    for (const cluster of installation.fleet.clusters.values()) {
      const vips = (await rulesIn(cluster)).flatMap(({ spec }) => spec.vipAddresses)
      expect(vips).not.toContain(addresses[0]?.address)
    }
  })
})

describe.skipIf(!hasGo)('the sources of the Go client', () => {
  test('generating again gives what is committed; UPDATE_SCHEMA=1 writes it', () => {
    if (process.env['UPDATE_SCHEMA'] === '1') expect(go('generate', './...')).toMatchObject(DONE)
    const directory = mkdtempSync(join(tmpdir(), 'genqlient-'))
    onTestFinished(() => rmSync(directory, { recursive: true }))
    const operations = readFileSync(join(module, 'operations.graphql'), 'utf8')
    const generated = readFileSync(generate(directory, operations), 'utf8')
    expect(readFileSync(join(module, 'api/generated.go'), 'utf8')).toBe(generated)
  })

  test('are formatted and vetted', () => {
    expect(spawnSync('gofmt', ['-l', '.'], { cwd: module, encoding: 'utf8' }).stdout).toBe('')
    expect(go('vet', './...')).toMatchObject(DONE)
  })
})

const DONE = { status: 0, stderr: '' }

/** A way to the server whose connections can be cut. */
async function breakableWay(endpoint: string) {
  const target = new URL(endpoint)
  const open = new Set<Socket>()
  const relay = createRelay((near) => {
    const far = connect(Number(target.port), target.hostname)
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      open.add(from)
      from.on('close', () => to.destroy()).on('error', () => to.destroy())
      from.pipe(to)
    }
  })
  await new Promise<void>((resolve) => relay.listen(0, '127.0.0.1', resolve))
  const cut = () => {
    for (const socket of open) socket.destroy()
    open.clear()
  }
  onTestFinished(() => {
    relay.close()
    cut()
  })
  const { port } = relay.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}${target.pathname}`, cut }
}
