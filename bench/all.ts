import { allocation } from './allocation.ts'
import type { Benchmark } from './benchmark.ts'
import { converge } from './converge.ts'
import { create } from './create.ts'
import { delivery } from './delivery.ts'
import { fanOut } from './fanOut.ts'
import { large } from './large.ts'
import { probing } from './probing.ts'
import { list, readOne } from './reading.ts'
import { repair } from './repair.ts'
import { resync } from './resync.ts'

/** By the name that `npm run bench` takes, in the order in which they run. */
export const BENCHMARKS: Record<string, Benchmark> = {
  create,
  'read-one': readOne,
  list,
  allocation,
  large,
  'fan-out': fanOut,
  delivery,
  probing,
  converge,
  repair,
  resync,
}

/** They take minutes, and are run when they are named. */
export const ALONE = new Set(['large'])

/** They start real API servers. */
export const REAL = new Set(['converge', 'repair', 'resync'])
