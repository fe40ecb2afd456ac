import type { Bed } from './bed.ts'

/** `ratio`: our rate by the floor's. */
export type Ratio = { name: string; ratio: number; target: number }
export type Benchmark = (bed: Bed) => Promise<Ratio[]>

const now = () => performance.now()

/**
 * Calls per second of `call`, from `clients` callers that each wait for an answer before they call
 * again, over `seconds`.
 */
export async function rate(
  clients: number,
  seconds: number,
  call: (client: number) => Promise<unknown>,
): Promise<number> {
  const end = now() + seconds * 1000
  let calls = 0
  const begun = now()
  await Promise.all(
    Array.from({ length: clients }, async (_, client) => {
      while (now() < end) {
        await call(client)
        calls += 1
      }
    }),
  )
  return (calls * 1000) / (now() - begun)
}

/**
 * Measures two things in turns, so that a machine whose speed drifts treats both alike, and answers
 * the median rate of each.
 */
export async function inTurns(
  floor: () => Promise<number>,
  ours: () => Promise<number>,
  rounds = 3,
): Promise<{ floor: number; ours: number }> {
  // What is compiled, cached and planned at first use isn't measured.
  await floor()
  await ours()
  const rates: { floor: number; ours: number }[] = []
  for (let round = 0; round < rounds; round += 1) {
    rates.push({ floor: await floor(), ours: await ours() })
  }
  const median = (values: number[]) =>
    values.sort((a, b) => a - b)[values.length >> 1] ?? Number.NaN
  const result = {
    floor: median(rates.map((one) => one.floor)),
    ours: median(rates.map((one) => one.ours)),
  }
  console.log(`  floor ${result.floor.toFixed(0)}/s, ours ${result.ours.toFixed(0)}/s`)
  return result
}
