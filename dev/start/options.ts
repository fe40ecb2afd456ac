import { parseArgs } from 'node:util'

export type StartOptions = {
  fresh: boolean
  help: boolean
  /** A directory other than .data. */
  data?: string | undefined
  /** What serves the clusters' API. */
  kube: 'embedded' | 'real'
}

export const USAGE = `npm start [-- --fresh --kube real]

Brings up everything on this machine: PostgreSQL, the API, the worker, and two regions of two
clusters with a simulated data plane. Data stay in .data/ between runs. Ctrl-C ends it all.

  --fresh      removes the data of earlier runs first
  --data DIR   keeps data in another directory
  --kube real  runs each cluster on a real kube-apiserver (npm run kube:build first; 300 MB each)
  --help       says this

  PORT, HOST     where the API listens (4000, 127.0.0.1)
  DATABASE_URL   a PostgreSQL of yours instead of the embedded one
  LOG_LEVEL      fatal, error, warn, info, debug, trace or silent (warn)`

/** Reads the arguments; a text is what is wrong with them. */
export function readOptions(args: string[]): StartOptions | string {
  try {
    const { values } = parseArgs({
      args,
      options: {
        fresh: { type: 'boolean', default: false },
        help: { type: 'boolean', default: false },
        data: { type: 'string' },
        kube: { type: 'string', default: 'embedded' },
      },
    })
    const { kube } = values
    return kube === 'embedded' || kube === 'real'
      ? { ...values, kube }
      : `--kube is embedded or real, not ${JSON.stringify(kube)}`
  } catch (error) {
    // What parseArgs refuses it explains in one line.
    return error instanceof Error ? error.message : String(error)
  }
}
