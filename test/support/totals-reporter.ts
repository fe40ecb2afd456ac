import type { Reporter, TestModule, TestRunEndReason } from 'vitest/node'

/** Prints the totals of a run as one plain line; in CI a skipped test fails the run. */
export class TotalsReporter implements Reporter {
  onTestRunEnd(
    modules: ReadonlyArray<TestModule>,
    errors: ReadonlyArray<unknown>,
    reason: TestRunEndReason,
  ): void {
    const tests = modules.flatMap((module) => [...module.children.allTests()])
    const count = (state: string): number =>
      tests.filter((test) => test.result().state === state).length
    // A file that can't be loaded has no tests to fail.
    const broken = modules.filter(
      (module) => module.state() === 'failed' && module.errors().length > 0,
    ).length
    const failed = count('failed') + broken + errors.length
    const skipped = tests.length - count('passed') - count('failed')
    const { CI } = process.env
    if (CI && skipped > 0 && reason !== 'interrupted') {
      process.stderr.write('Skipped tests fail the run in CI:\n')
      for (const test of tests) {
        if (test.result().state === 'skipped') process.stderr.write(`  ${test.fullName}\n`)
      }
      process.exitCode = 1
    }
    process.stdout.write(`${count('passed')} passed, ${failed} failed, ${skipped} skipped\n`)
  }
}
