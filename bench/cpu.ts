import { readdirSync, readFileSync } from 'node:fs'

/** Of a second. */
const TICK = 0.01

type Process = { parent: number; seconds: number }

/**
 * The CPU time (s) that a process and all that descend from it have taken, those that have ended
 * included; null where there is no /proc. On a machine that others use too it tells more than rates do.
 */
export function cpuOfTree(root: number = process.pid): number | null {
  let names: string[]
  try {
    names = readdirSync('/proc')
  } catch {
    return null
  }
  const processes = new Map<number, Process>()
  for (const name of names) {
    const pid = Number(name)
    const found = Number.isInteger(pid) ? read(pid) : undefined
    if (found !== undefined) processes.set(pid, found)
  }
  if (!processes.has(root)) return null
  const within = (pid: number): boolean =>
    pid === root || (processes.has(pid) && within(processes.get(pid)?.parent ?? 0))
  let sum = 0
  for (const [pid, { seconds }] of processes) if (within(pid)) sum += seconds
  return sum
}

/** The most memory (MB) that a process has had resident; null where there is no /proc. */
export function mostMemory(pid: number): number | null {
  try {
    const found = /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))
    return found === null ? null : Number(found[1]) / 1_000
  } catch {
    return null
  }
}

function read(pid: number): Process | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // Behind the name, which may hold anything: state, parent, …; user and system time, and those of
    // children that were waited for, are the 12th to 15th there.
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
    const times = fields.slice(11, 15).map(Number)
    return { parent: Number(fields[1]), seconds: times.reduce((a, b) => a + b, 0) * TICK }
  } catch {
    // It has ended meanwhile.
    return undefined
  }
}
