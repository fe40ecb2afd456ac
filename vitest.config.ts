import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'
import { PATIENCE } from './test/support/patience.ts'
import { TotalsReporter } from './test/support/totals-reporter.ts'

export default defineConfig({
  // The bundlers' entry of graphql, which Vite would take for our files, is another instance than
  // the one that node gives to the libraries, and graphql refuses to mix two.
  resolve: {
    alias: [{ find: /^graphql$/, replacement: fileURLToPath(import.meta.resolve('graphql')) }],
  },
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
    maxWorkers: 4,
    // Loading the same modules anew for each of 140 files took half of the time.
    isolate: false,
  },
})
