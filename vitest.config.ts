import { defineConfig } from 'vitest/config'
import { LongestFirst } from './test/support/longest-first.ts'
import { PATIENCE } from './test/support/patience.ts'
import { TotalsReporter } from './test/support/totals-reporter.ts'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // That every benchmark runs is CI's to show: it takes as long as forty other files.
    exclude: process.env['CI'] ? [] : ['test/bench/**'],
    globalSetup: ['test/support/global-setup.ts', 'test/support/cluster-broker.ts'],
    reporters: ['default', new TotalsReporter()],
    // Each wait of a test has a limit of its own; these bound the sum.
    testTimeout: 4 * PATIENCE,
    hookTimeout: 4 * PATIENCE,
    expect: { poll: { timeout: PATIENCE, interval: 100 } },
    // Files mostly wait: four at a time left a sixth of two cores idle. Real API servers take that.
    maxWorkers: process.env['CI'] ? 4 : 6,
    sequence: { sequencer: LongestFirst },
    // Node strips types by itself, as in production, and keeps what it compiled; Vite transformed all anew at
    // each run. Nothing here mocks a module, which is what its loader is for.
    experimental: { viteModuleRunner: false, nodeLoader: false },
    // Loading the same modules anew for each of 140 files took half of the time.
    isolate: false,
  },
})
