import { readFileSync, writeFileSync } from 'node:fs'
import pg from 'pg'
import { describe, expect, test } from 'vitest'
import { REASONS_PAGE, reasonsPage } from '../../dev/docs/reasons.ts'
import { EVENT_REASONS } from '../../src/domain/events/reasons.ts'
import { REFUSAL_CODES } from '../../src/domain/refusalCodes.ts'
import { REASONS } from '../../src/rules/reasons.ts'
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
    const spelled = sources.flatMap((path) => found(/\breason: '(\w+)'/g, textOf(path)))
    expect(spelled.length).toBeGreaterThan(10)
    expect(spelled.filter((name) => !listed.has(name))).toEqual([])
  })

  test('hold every reason that the functions and tables of the database spell out', async () => {
    const client = new pg.Client({ connectionString: database.url })
    await client.connect()
    const { rows } = await client.query<{ text: string }>(`
      SELECT pg_get_functiondef(oid) AS text FROM pg_proc
      WHERE pronamespace = 'public'::regnamespace AND prokind = 'f'
        AND prolang IN (SELECT oid FROM pg_language WHERE lanname IN ('sql', 'plpgsql'))
      UNION ALL
      SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef`)
    await client.end()
    const kinds = ['LoadBalancer', 'IPv4Reservation', 'IPv']
    const spelled = rows.flatMap(({ text }) => found(/'((?:[A-Z][a-z0-9]+)+(?:v4\w+)?)'/g, text))
    expect(spelled).toContain('LoadBalancerCreated')
    expect(spelled).toContain('NoProber')
    expect(spelled.filter((name) => !listed.has(name) && !kinds.includes(name))).toEqual([])
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
