import { readFileSync, writeFileSync } from 'node:fs'
import pg from 'pg'
import { describe, expect, expectTypeOf, test } from 'vitest'
import { REASONS_PAGE, reasonsPage } from '../../dev/docs/reasons.ts'
import { EVENT_REASONS, type EventReason } from '../../src/domain/events/reasons.ts'
import { REFUSAL_CODES } from '../../src/domain/refusalCodes.ts'
import { isReason, REASONS, type Reason } from '../../src/rules/reasons.ts'
import { REMEDIES } from '../../src/rules/remedies.ts'
import { useDatabase } from '../support/database.ts'
import { filesBelow, textOf } from '../support/imports.ts'

const database = useDatabase()
const listed = new Set([...Object.keys(REASONS), ...Object.keys(EVENT_REASONS)])
const sources = filesBelow('src').filter(
  (path) => path.endsWith('.ts') && !path.includes('/generated/'),
)
const found = (pattern: RegExp, text: string): string[] =>
  [...text.matchAll(pattern)].flatMap(([, name]) => name ?? [])

const isUnlisted = (name: string) => !listed.has(name)
const spelledIn = (texts: string[]) => texts.flatMap((text) => found(/\breason: '(\w+)'/g, text))

/** CamelCase words in it, but for those that name kinds of objects. */
async function spelledInDatabase(client: pg.Client): Promise<string[]> {
  const kinds = ['LoadBalancer', 'IPv4Reservation', 'IPv']
  const { rows } = await client.query<{ text: string }>(`
    SELECT pg_get_functiondef(oid) AS text FROM pg_proc
    WHERE pronamespace = 'public'::regnamespace AND prokind = 'f'
      AND prolang IN (SELECT oid FROM pg_language WHERE lanname IN ('sql', 'plpgsql'))
    UNION ALL
    SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef`)
  return rows
    .flatMap(({ text }) => found(/'((?:[A-Z][a-z0-9]+)+(?:v4\w+)?)'/g, text))
    .filter((name) => !kinds.includes(name))
}

async function withDatabase<T>(work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: database.url })
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}

test('docs/reasons.md is what the lists say; UPDATE_DOCS=1 writes it', () => {
  if (process.env['UPDATE_DOCS'] === '1') writeFileSync(REASONS_PAGE, reasonsPage())
  expect(readFileSync(REASONS_PAGE, 'utf8')).toBe(reasonsPage())
})

describe('the lists', () => {
  test('hold CamelCase words and CODES, each with a sentence', () => {
    for (const [name, line] of Object.entries({ ...REASONS, ...EVENT_REASONS })) {
      expect(name).toMatch(/^(?:[A-Z][a-z0-9]*|IPv4)+$/)
      expect(line).toMatch(/^[A-Z].*\.$/)
    }
    for (const [code, line] of Object.entries(REFUSAL_CODES)) {
      expect(code).toMatch(/^[A-Z]+(?:_[A-Z]+)*$/)
      expect(line).toMatch(/^[A-Z].*\.$/)
    }
  })

  test('give every reason that can stand against something a remedy', () => {
    for (const remedy of Object.values(REMEDIES)) if (remedy !== null) expect(remedy).toMatch(/\.$/)
  })

  test('hold every reason that the code spells out', () => {
    expect(spelledIn(sources.map(textOf)).length).toBeGreaterThan(10)
    expect(spelledIn(sources.map(textOf)).filter(isUnlisted)).toEqual([])
  })

  test('hold every reason that the functions and tables of the database spell out', async () => {
    const spelled = await withDatabase(spelledInDatabase)
    expect(spelled).toContain('LoadBalancerCreated')
    expect(spelled).toContain('NoProber')
    expect(spelled.filter(isUnlisted)).toEqual([])
  })

  test('are closed: a reason that is made up is found in code, in the database and by the compiler', async () => {
    expect(spelledIn(["return { status, reason: 'MadeUp' }"]).filter(isUnlisted)).toEqual([
      'MadeUp',
    ])
    const spelled = await withDatabase(async (client) => {
      await client.query("BEGIN; CREATE FUNCTION made_up() RETURNS text RETURN 'MadeUp'")
      return spelledInDatabase(client)
    })
    expect(spelled.filter(isUnlisted)).toEqual(['MadeUp'])
    // By the compiler.
    expectTypeOf<'MadeUp'>().not.toExtend<Reason>()
    expectTypeOf<'MadeUp'>().not.toExtend<EventReason>()
    expect(isReason('MadeUp')).toBe(false)
  })

  test('hold every code by which the database refuses, or the domain makes another of it', () => {
    const own = [
      'INVALID',
      'OVERFULL',
      'VPC_NOT_FOUND',
      'REGION_NOT_FOUND',
      'RESERVATION_NOT_FOUND',
    ]
    const told = filesBelow('prisma').flatMap((path) =>
      found(/'refused', '([A-Z_]+)'/g, textOf(path)),
    )
    expect(told.length).toBeGreaterThan(5)
    expect(
      told.filter((code) => !Object.hasOwn(REFUSAL_CODES, code) && !own.includes(code)),
    ).toEqual([])
  })
})
