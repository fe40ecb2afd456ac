/** npm run bench [-- name …]: every benchmark, or those named; what was found last. */
import { haveRealApiServer } from '../dev/kube-real/server.ts'
import { ALONE, BENCHMARKS, REAL } from './all.ts'
import { type Finding, FULL, lineOf } from './benchmark.ts'
import { Ground } from './ground.ts'

const names = process.argv.slice(2)
const unknown = names.filter((name) => !(name in BENCHMARKS))
if (unknown.length > 0) {
  const known = Object.keys(BENCHMARKS).join(', ')
  console.error(`no such benchmark: ${unknown.join(', ')}; there are ${known}`)
  process.exit(1)
}

const findings: Finding[] = []
for (const [name, benchmark] of Object.entries(BENCHMARKS)) {
  if (names.length > 0 ? !names.includes(name) : ALONE.has(name)) continue
  console.log(`\n${name}`)
  if (REAL.has(name) && !haveRealApiServer()) {
    console.log('  not measured: there is no real API server here (npm run kube:build)')
    continue
  }
  // None finds what another left behind.
  const ground = new Ground()
  try {
    findings.push(...(await benchmark(ground, FULL)))
  } finally {
    await ground.close()
  }
}
console.log('\nfound (ratios: ours by the floor, in turns in this run)')
for (const finding of findings) console.log(lineOf(finding))
