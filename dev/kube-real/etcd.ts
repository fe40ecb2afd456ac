import { request } from 'node:http'
import { join, relative } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { isObject, objectAt } from '../kube/json.ts'
import { type Program, startProgram } from './program.ts'

export type Etcd = {
  /** As kube-apiserver's `--etcd-servers` has it, for one that runs in the same folder. */
  endpoint: string
  program: Program
  /** Forgets all but the present; answers the revision of now. */
  compact(): Promise<number>
}

/** How long a start may take, ms; a cold disk takes a second or two. */
const START_MS = 20_000

/**
 * Starts an etcd of one member in `folder`, behind a socket there that only its owner can use: it
 * needs neither ports nor certificates.
 */
export async function startEtcd(options: {
  binary: string
  folder: string
  /** Whether contents have to survive: this process, and a crash of the machine. */
  durable: boolean
}): Promise<Etcd> {
  const { binary, folder } = options
  // Host and port of such an address are the name of a socket in the working directory.
  const endpoint = 'unix://etcd:0'
  const absolute = join(folder, 'etcd:0')
  const socketPath = [absolute, relative(process.cwd(), absolute)].sort(shorter)[0] ?? absolute
  const peer = 'unix://peer:0'
  const program = await startProgram({
    file: binary,
    folder,
    doomed: options.durable ? undefined : folder,
    log: join(folder, 'etcd.log'),
    args: [
      ...['--name', 'one'],
      ...['--data-dir', 'etcd'],
      ...['--listen-client-urls', endpoint, '--advertise-client-urls', endpoint],
      ...['--listen-peer-urls', peer, '--initial-advertise-peer-urls', peer],
      ...['--initial-cluster', `one=${peer}`],
      ...['--log-level', 'warn'],
      // The default asks for an election only after a second, with nobody to elect but itself.
      ...['--heartbeat-interval', '10', '--election-timeout', '100'],
      ...['--snapshot-count', '10000'],
      ...(options.durable ? [] : ['--unsafe-no-fsync']),
    ],
  })
  const etcd: Etcd = {
    endpoint,
    program,
    compact: async () => {
      const range = await call(socketPath, '/v3/kv/range', { key: 'AA==', count_only: true })
      const revision = Number(objectAt(range, 'header')?.['revision'])
      await call(socketPath, '/v3/kv/compaction', { revision: `${revision}`, physical: true })
      return revision
    },
  }
  const until = performance.now() + START_MS
  for (;;) {
    const answer = await call(socketPath, '/v3/maintenance/status', {}).catch(() => undefined)
    if (answer !== undefined) return etcd
    if (!program.running() || performance.now() > until) {
      await program.stop()
      throw new Error(`etcd didn't start: ${program.lastLines()}`)
    }
    await delay(20)
  }
}

/** Paths of sockets have to be shorter than 104 characters. */
const shorter = (a: string, b: string): number => a.length - b.length

/** One call of etcd's JSON gateway. */
function call(socketPath: string, path: string, body: object) {
  return new Promise<Parameters<typeof objectAt>[0]>((resolve, reject) => {
    const sent = request({ socketPath, path, method: 'POST', timeout: 10_000 }, (answer) => {
      let text = ''
      answer.setEncoding('utf8')
      answer.on('data', (chunk: string) => {
        text += chunk
      })
      answer.once('error', reject)
      answer.once('end', () => {
        const parsed: unknown = answer.statusCode === 200 ? JSON.parse(text) : undefined
        if (isObject(parsed)) resolve(parsed)
        else reject(new Error(`etcd answered ${answer.statusCode}: ${text}`))
      })
    })
    sent.once('error', reject)
    sent.once('timeout', () => sent.destroy(new Error('etcd took too long to answer')))
    sent.end(JSON.stringify(body))
  })
}
