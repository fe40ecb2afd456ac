import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** The files that take longest, mostly because they wait: for processes, leases and deadlines. */
const LONGEST = [
  'workers/misbehaving',
  'workers/lacking',
  'dev/start',
  'dev/startReal',
  'docs/operate',
  'api/explain',
  'telemetry/metrics',
  'workers/health',
  'workers/strangers',
  'workers/inventory',
  'workers/restored',
  'workers/mishandled',
  'api/operatorsForget',
  'api/move',
  'api/quotas',
  'server/coherence/coherence',
  'server/main',
  'server/slowReader',
].map((name) => `/test/${name}.test.ts`)

/**
 * Begins with the files that take longest. Vitest does so only where it has run them before; in a new clone
 * it goes by their sizes, and one that begins last is waited for by an idle machine.
 */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    const isLong = ({ moduleId }: TestSpecification) =>
      LONGEST.some((name) => moduleId.endsWith(name))
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))]
  }
}
