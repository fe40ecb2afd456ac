import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import {
  buildASTSchema,
  DangerousChangeType,
  extendSchema,
  findBreakingChanges,
  findDangerousChanges,
  isInputObjectType,
  lexicographicSortSchema,
  parse,
  printSchema,
  validateSchema,
} from 'graphql'
import { expect, test } from 'vitest'
import { operatorSchema, schema } from '../../src/server/schema.ts'
import { describedCoordinates, without } from './coordinates.ts'
import { breakingDifferences } from './differences.ts'

const here = (path: string) => new URL(path, import.meta.url)
const text = (path: string) => readFileSync(here(path), 'utf8')
const lines = (path: string) => text(path).split('\n').filter(Boolean)

const tenants = parse(text('api.graphql'))
const additions = parse(text('operators.graphql'))
const whole = extendSchema(buildASTSchema(tenants), additions)
const notYet = lines('operators-not-yet.txt')
const left = new Set([...notYet, ...lines('not-yet.txt')])
/** What of both contracts is to be served to operators by now. */
const due = extendSchema(buildASTSchema(without(tenants, left)), without(additions, left))

test('the contract is the one that is kept beside the checkout', (context) => {
  const shared = here('../../../shared/operators.graphql')
  if (!existsSync(shared)) return context.skip('there is no contract beside this checkout')
  expect(text('operators.graphql')).toBe(readFileSync(shared, 'utf8'))
})

test('what operators are served is valid, and all of it is described', () => {
  expect(validateSchema(operatorSchema)).toEqual([])
  const bare = [...describedCoordinates(operatorSchema)].filter(([, description]) => !description)
  expect(bare.map(([coordinate]) => coordinate)).toEqual([])
})

test('no client of the contract breaks on what operators are served', () => {
  const told = findBreakingChanges(due, operatorSchema).map(({ description }) => description)
  expect(told).toEqual([])
})

test('unions, enums, interfaces and defaults are exactly those of the contract', () => {
  const more: string[] = [
    DangerousChangeType.OPTIONAL_ARG_ADDED,
    DangerousChangeType.OPTIONAL_INPUT_FIELD_ADDED,
  ]
  const told = findDangerousChanges(due, operatorSchema)
    .filter(({ type }) => !more.includes(type))
    .map(({ description }) => description)
  expect(told).toEqual([])
  expect(breakingDifferences(due, operatorSchema)).toEqual([])
})

test('operators are served all that tenants are, with the same meaning', () => {
  const optional: string[] = [DangerousChangeType.OPTIONAL_INPUT_FIELD_ADDED]
  expect(findBreakingChanges(schema, operatorSchema)).toEqual([])
  const told = findDangerousChanges(schema, operatorSchema)
  expect(told.filter(({ type }) => !optional.includes(type))).toEqual([])
})

test('tenants are served nothing of what only operators are', () => {
  const theirs = describedCoordinates(schema)
  const ofTenants = describedCoordinates(buildASTSchema(tenants))
  const operatorsOnly = [...describedCoordinates(whole).keys()].filter(
    (coordinate) => !ofTenants.has(coordinate),
  )
  expect(operatorsOnly.length).toBeGreaterThan(100)
  expect(operatorsOnly.filter((coordinate) => theirs.has(coordinate))).toEqual([])
  const marked = Object.values(operatorSchema.getTypeMap()).flatMap((type) => [
    ...(type.extensions['operators'] === true ? [type.name] : []),
    ...('getFields' in type && !isInputObjectType(type)
      ? Object.values(type.getFields())
          .filter(({ extensions }) => extensions['operators'] === true)
          .map(({ name }) => `${type.name}.${name}`)
      : []),
  ])
  expect(marked.filter((coordinate) => theirs.has(coordinate))).toEqual([])
})

test('what is not served yet is listed, sorted, and only while that is so', () => {
  const served = describedCoordinates(operatorSchema)
  const promised = describedCoordinates(whole)
  expect(notYet).toEqual([...new Set(notYet)].sort())
  expect(notYet.filter((coordinate) => !promised.has(coordinate))).toEqual([])
  expect(notYet.filter((coordinate) => served.has(coordinate))).toEqual([])
})

test('the printed schema is the committed one; UPDATE_SCHEMA=1 writes it', () => {
  const printed = `${printSchema(lexicographicSortSchema(operatorSchema))}\n`
  const committed = here('../../schema.operators.graphql')
  if (process.env['UPDATE_SCHEMA'] === '1') writeFileSync(committed, printed)
  expect(readFileSync(committed, 'utf8')).toBe(printed)
})
