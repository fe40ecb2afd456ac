import { cpuOfTree } from './cpu.ts'
import type { Ground } from './ground.ts'

/** What was found of one thing, and what it should be. Without a target it is only told. */
export type Finding = { name: string; value: number; unit?: string } & (
  | { atLeast: number }
  | { atMost: number }
  | { told: true }
)

/** How large a run is: all of it, or just enough to see that it works. */
export type Scale = { seconds: number; rounds: number; part: number }
export const FULL: Scale = { seconds: 4, rounds: 5, part: 1 }
export const TINY: Scale = { seconds: 0.2, rounds: 1, part: 0.01 }

/** As many as a full run has, or the part of them that this one has, but some at least. */
export const share = (scale: Scale, count: number, least = 1): number =>
  Math.max(least, Math.round(count * scale.part))

export type Benchmark = (ground: Ground, scale: Scale) => Promise<Finding[]>

/** Calls per second, and the CPU (s) that each took of all processes together; null where that isn't told. */
export type Rate = { perSecond: number; cpu: number | null }

/**
 * Of `call`, from `clients` callers that each wait for an answer before they call again, over
 * `seconds`.
 */
export async function rate(
  clients: number,
  seconds: number,
  call: (client: number) => Promise<unknown>,
): Promise<Rate> {
  const ended = measuring()
  const end = performance.now() + seconds * 1000
  let calls = 0
  await Promise.all(
    Array.from({ length: clients }, async (_, client) => {
      while (performance.now() < end) {
        await call(client)
        calls += 1
      }
    }),
  )
  return ended(calls)
}

/** Begins to measure; what it answers is called with how many calls there were. */
export function measuring(): (calls: number) => Rate {
  const cpuBefore = cpuOfTree()
  const begun = performance.now()
  return (calls) => {
    const took = (performance.now() - begun) / 1000
    const cpuAfter = cpuOfTree()
    const cpu = cpuBefore === null || cpuAfter === null ? null : (cpuAfter - cpuBefore) / calls
    return { perSecond: calls / took, cpu }
  }
}

/** The median of some rounds, and what each of them was. */
export type Measured = Rate & { rounds: readonly Rate[] }

/** What was measured under a name. */
export type Found = (name: string) => Measured

/**
 * Measures some things in turns, so that a machine whose speed drifts treats them alike, and answers
 * the median of each.
 */
export async function inTurns(
  scale: Scale,
  measured: Record<string, () => Promise<Rate>>,
): Promise<Found> {
  const each = Object.entries(measured).map(([name, measure]) => ({
    name,
    measure,
    rates: [] as Rate[],
  }))
  // What is compiled, cached and planned at first use isn't measured.
  for (const { measure } of each) await measure()
  for (let round = 0; round < scale.rounds; round += 1) {
    for (const { measure, rates } of each) rates.push(await measure())
  }
  const found = new Map<string, Measured>()
  for (const { name, rates } of each) {
    const cpus = rates.flatMap(({ cpu }) => cpu ?? [])
    const perSecond = median(rates.map((one) => one.perSecond))
    const cpu = cpus.length === 0 ? null : median(cpus)
    found.set(name, { perSecond, cpu, rounds: rates })
    console.log(`  ${name.padEnd(14)} ${wordsOf({ perSecond, cpu })}`)
  }
  return (name) => {
    const one = found.get(name)
    if (one === undefined) throw new Error(`${name} was not measured`)
    return one
  }
}

export const wordsOf = ({ perSecond, cpu }: Rate): string =>
  `${perSecond.toFixed(0)}/s${cpu === null ? '' : `, ${(cpu * 1000).toFixed(2)} ms of CPU each`}`

/**
 * Ours as a part of the floor, the median of what each round says: its two runs follow one another, whereas the
 * machine's speed may have changed by a third from one round to the next. By rate, which decides, and by CPU.
 */
export function compared(name: string, found: Found, atLeast: number): Finding[] {
  const [floor, ours] = [found('floor').rounds, found('ours').rounds]
  const value = median(
    ours.map((one, round) => one.perSecond / (floor[round]?.perSecond ?? Number.NaN)),
  )
  const cpus = ours.flatMap(({ cpu }, round) => {
    const other = floor[round]?.cpu ?? null
    return cpu === null || other === null ? [] : [other / cpu]
  })
  const byCpu: Finding[] =
    cpus.length === 0 ? [] : [{ name: `${name}, by CPU`, value: median(cpus), told: true }]
  return [{ name, value, atLeast }, ...byCpu]
}

export const median = (values: number[]): number => percentile(values, 0.5)

/** The value below which this part of them lies. */
export function percentile(values: number[], part: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN
}

/** One line of the report. */
export function lineOf(finding: Finding): string {
  const { name, value, unit = '' } = finding
  const text = `  ${name.padEnd(44)} ${value.toFixed(value < 10 ? 2 : 0)}${unit}`
  if ('told' in finding) return text
  const [sign, target] = 'atLeast' in finding ? ['≥', finding.atLeast] : ['≤', finding.atMost]
  const met = 'atLeast' in finding ? value >= target : value <= target
  return `${text}  target ${sign} ${target}${unit}  ${met ? 'met' : 'MISSED'}`
}
