/** npm run bench [name …]: every benchmark, or those named; ratios last. */

import { startBed } from './bed.ts'
import type { Benchmark, Ratio } from './benchmark.ts'
import { create } from './create.ts'
import { readOne } from './readOne.ts'

const ALL: Record<string, Benchmark> = { create, 'read-one': readOne }

const names = process.argv.slice(2)
const unknown = names.filter((name) => !(name in ALL))
if (unknown.length > 0) {
  console.error(
    `no such benchmark: ${unknown.join(', ')}; there are ${Object.keys(ALL).join(', ')}`,
  )
  process.exit(1)
}

const bed = await startBed()
const ratios: Ratio[] = []
try {
  for (const [name, benchmark] of Object.entries(ALL)) {
    if (names.length > 0 && !names.includes(name)) continue
    console.log(`\n${name}`)
    ratios.push(...(await benchmark(bed)))
  }
} finally {
  await bed.close()
}
console.log('\nratios (ours / floor, measured in turns in this run)')
for (const { name, ratio, target } of ratios) {
  const verdict = ratio >= target ? 'reached' : 'missed'
  console.log(`  ${name.padEnd(24)} ${ratio.toFixed(2)}  target ≥ ${target}  ${verdict}`)
}
