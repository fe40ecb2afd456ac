import type { Store } from './client.ts'
import { TransactionTimeout } from './transaction.ts'

/** One goes on while the next one stands at the locks already. */
const AT_ONCE = 2
/** Nobody waits longer for a turn (ms). */
const LONGEST = 30_000

type Line = { running: number; waiting: Set<() => void> }
const lines = new WeakMap<Store['pool'], Map<string, Line>>()

/**
 * Does `work` when it is its turn among all that this process does under that name, first come, first
 * served. Most changes of one project wait for each other's rows in any case (creations for those of the
 * project, others for those of the VPC): who waits here instead holds none of the connections that others
 * need, and the time that its transaction has does not run yet.
 * Not begun after 30 s: `TransactionTimeout`. `work` must not ask for a turn itself.
 */
export async function inTurn<T>(
  { pool }: Pick<Store, 'pool'>,
  name: string,
  work: () => Promise<T>,
  longest = LONGEST,
): Promise<T> {
  const all = lines.get(pool) ?? new Map<string, Line>()
  lines.set(pool, all)
  const line = all.get(name) ?? { running: 0, waiting: new Set() }
  all.set(name, line)
  if (line.running >= AT_ONCE) await turn(line, longest)
  else line.running += 1
  try {
    return await work()
  } finally {
    const [next] = line.waiting
    // The place goes over to the next one as it is.
    if (next !== undefined) next()
    else line.running -= 1
    if (line.running === 0) all.delete(name)
  }
}

function turn({ waiting }: Line, longest: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const called = () => {
      waiting.delete(called)
      clearTimeout(timer)
      resolve()
    }
    const timer = setTimeout(() => {
      waiting.delete(called)
      reject(new TransactionTimeout(`not begun after ${longest} ms`))
    }, longest)
    waiting.add(called)
  })
}
