import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

export type WorkerProcess = {
  /** Resolves when the first worker says that it works, or when it is given up. */
  ready: Promise<void>
  /** Resolves, with how it ended, when workers die faster than it makes sense to start new ones. */
  givenUp: Promise<string>
  pid(): number | undefined
  /** Asks it to end, and after `patienceMs` ends it. */
  stop(patienceMs: number): Promise<void>
}

/** A worker that lived this long was well: the next death is a first one again. */
const WELL_MS = 30_000
const MOST_DEATHS = 6

const program = fileURLToPath(new URL('../worker.ts', import.meta.url))

/**
 * Runs the worker as a process of its own and starts another one when it dies, each time later. It ends
 * with this process, however that ends: the channel between them then closes.
 */
export function startWorkerProcess(args: string[], environment: NodeJS.ProcessEnv): WorkerProcess {
  const ready = Promise.withResolvers<void>()
  const givenUp = Promise.withResolvers<string>()
  const stopping = Promise.withResolvers<void>()
  let stopped = false
  let child: ChildProcess | undefined

  const run = async () => {
    for (let deaths = 0; !stopped; ) {
      const begun = performance.now()
      child = fork(program, args, {
        env: environment,
        stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      })
      child.on('message', () => ready.resolve())
      const [code, signal] = await once(child, 'exit')
      if (stopped) return
      const how = signal === null ? `exit code ${code}` : `${signal}`
      deaths = performance.now() - begun > WELL_MS ? 1 : deaths + 1
      if (deaths === MOST_DEATHS) {
        ready.resolve()
        givenUp.resolve(how)
        return
      }
      const pause = Math.min(10_000, 250 * 2 ** deaths) * (0.8 + 0.4 * Math.random())
      console.error(`The worker ended (${how}); another one starts in ${Math.round(pause)} ms.`)
      await Promise.race([stopping.promise, wait(pause)])
    }
  }
  const running = run()

  return {
    ready: ready.promise,
    givenUp: givenUp.promise,
    pid: () => child?.pid,
    async stop(patienceMs) {
      stopped = true
      stopping.resolve()
      if (child?.connected) child.disconnect()
      const timer = setTimeout(() => child?.kill('SIGKILL'), patienceMs)
      await running
      clearTimeout(timer)
    },
  }
}

function wait(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms).unref()
  })
}
