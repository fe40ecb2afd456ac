import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { refoldAlone } from '../../src/domain/placements/derive.ts'
import { readWanted } from '../../src/domain/placements/wanted.ts'
import { desired } from '../../src/rules/desired.ts'
import { BACKENDS, SELECTOR } from '../rules/wishes.ts'
import { ADDRESSES, useScene } from '../workers/probe/scene.ts'

const scene = useScene()

/** A letter for each backend: what it is, and what its check says. */
const KINDS = {
  H: { state: 'HEALTHY', reason: 'Healthy' },
  U: { state: 'UNHEALTHY', reason: 'Unhealthy' },
  F: { state: 'UNHEALTHY', reason: 'Flapping' },
  '?': { state: 'UNKNOWN', reason: 'NotProbedYet' },
  N: { state: 'NOT_CHECKED', reason: 'NoProber' },
  // On standby, healthy and not; disabled; enabled where nobody knows the address.
  s: { state: 'HEALTHY', reason: 'Healthy', adminState: 'STANDBY' },
  u: { state: 'UNHEALTHY', reason: 'Unhealthy', adminState: 'STANDBY' },
  d: { state: 'NOT_CHECKED', reason: 'Disabled', adminState: 'DISABLED' },
  x: { state: 'HEALTHY', reason: 'Healthy', unresolved: true },
} as const
type Letter = keyof typeof KINDS
const isLetter = (letter: string): letter is Letter => letter in KINDS

/** A load balancer of such backends; `minimum` is its minimumHealthyPercent. */
async function create(letters: string, minimum: number): Promise<string> {
  const kinds = [...letters].flatMap((letter, index) =>
    isLetter(letter)
      ? [{ adminState: 'ENABLED' as const, ...KINDS[letter], address: addressOf(letter, index) }]
      : [],
  )
  const id = await scene.create('web', [], {
    backends: kinds.map(({ address, adminState }) => ({ address, adminState })),
    healthCheck: { minimumHealthyPercent: minimum },
  })
  await scene.store.pool.query(
    `UPDATE backend SET health_state = kind.state, health_reason = kind.reason
     FROM jsonb_to_recordset($2) AS kind (address inet, state text, reason text)
     WHERE load_balancer_id = $1 AND backend.address = kind.address`,
    [id, JSON.stringify(kinds)],
  )
  await refoldAlone(scene.store, id)
  return id
}

const addressOf = (letter: string, index: number): string =>
  letter === 'x' ? `fd00:9::${index + 1}` : (ADDRESSES[index] ?? '')

/** The letters of the backends that are in the rule of a data plane of each dialect. */
async function serving(id: string, letters: string) {
  const taken = (await readWanted(scene.store, scene.owner.cluster, [id])).get(id)
  if (taken === undefined) throw new Error('it is placed nowhere')
  const named = (has: (address: string, uid: string) => boolean) =>
    [...letters].filter((letter, index) => has(addressOf(letter, index), `uid-${index}`)).join('')
  const { rules } = desired(taken.wanted, BACKENDS)
  const listed = rules.flatMap(({ spec }) =>
    'backends' in spec ? spec.backends.map(({ address }) => address) : [],
  )
  const labelled = desired(taken.wanted, SELECTOR).labels.map(({ uid }) => uid)
  return {
    backends: named((address) => listed.includes(address)),
    selector: named((_, uid) => labelled.includes(uid)),
  }
}

const healthOf = async (id: string) =>
  (await scene.read(id)).status.conditions.find(({ type }) => type === 'BackendsHealthy')?.reason

describe('of backends that are', () => {
  test.each([
    ['H', 0, 'H', 'Healthy'],
    ['U', 0, 'U', 'FailOpen'],
    ['U', 100, 'U', 'FailOpen'],
    ['?', 100, '?', 'NotProbedYet'],
    ['NN', 100, 'NN', 'NoProber'],
    ['UUU', 0, 'UUU', 'FailOpen'],
    ['UUUUUUUUUUUU', 0, 'UUUUUUUUUUUU', 'FailOpen'],
    ['UUUUUUUUUUUH', 0, 'H', 'SomeUnhealthy'],
    ['UUH', 33, 'H', 'SomeUnhealthy'],
    ['UUH', 34, 'UUH', 'FailOpen'],
    ['UH', 50, 'H', 'SomeUnhealthy'],
    ['UH', 51, 'UH', 'FailOpen'],
    ['UUH', 50, 'UUH', 'FailOpen'],
    ['UHHH', 75, 'HHH', 'SomeUnhealthy'],
    ['UHHH', 100, 'UHHH', 'FailOpen'],
    ['HHHH', 100, 'HHHH', 'Healthy'],
    ['U?', 0, '?', 'SomeUnhealthy'],
    ['U?', 50, '?', 'SomeUnhealthy'],
    ['U?', 100, 'U?', 'FailOpen'],
    ['FH', 0, 'H', 'Flapping'],
    ['FU', 0, 'FU', 'FailOpen'],
    // One that may not serve doesn't count, however healthy it is.
    ['Us', 0, 'U', 'FailOpen'],
    ['Hu', 100, 'H', 'Healthy'],
    ['Ud', 0, 'U', 'FailOpen'],
    ['Ux', 0, 'U', 'FailOpen'],
    ['UHx', 50, 'H', 'SomeUnhealthy'],
    ['UHxx', 51, 'UH', 'FailOpen'],
  ])('%s with a minimum of %i %%, %s serve in both dialects: %s', async (...row) => {
    const [letters, minimum, expected, reason] = row
    const id = await create(letters, minimum)
    expect(await serving(id, letters)).toEqual({ backends: expected, selector: expected })
    expect(await healthOf(id)).toBe(reason)
  })
})

test('health alone never empties a rule, and never lets one serve that is not enabled', async () => {
  const anyLetters = fc
    .array(fc.constantFrom(...Object.keys(KINDS)), { minLength: 1, maxLength: 12 })
    .map((letters) => letters.join(''))
    .filter((letters) => /[HUF?N]/.test(letters))
  await fc.assert(
    fc.asyncProperty(anyLetters, fc.integer({ min: 0, max: 100 }), async (letters, minimum) => {
      const id = await create(letters, minimum)
      const { backends, selector } = await serving(id, letters)
      expect(backends).toBe(selector)
      expect(backends).toMatch(/^[HUF?N]+$/)
      await scene.store.pool.query('DELETE FROM ipv6_block')
      await scene.store.pool.query('DELETE FROM load_balancer')
    }),
    { numRuns: 50 },
  )
})
