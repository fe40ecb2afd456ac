import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import {
  buildASTSchema,
  buildSchema,
  DangerousChangeType,
  findBreakingChanges,
  findDangerousChanges,
  type GraphQLSchema,
  isInputObjectType,
  lexicographicSortSchema,
  parse,
  printSchema,
  validateSchema,
} from 'graphql'
import { expect, test } from 'vitest'
import { schema } from '../../src/server/schema.ts'
import { describedCoordinates, without } from './coordinates.ts'
import { breakingDifferences } from './differences.ts'

const here = (path: string) => new URL(path, import.meta.url)
const text = (path: string) => readFileSync(here(path), 'utf8')

const contract = parse(text('api.graphql'))
const notYet = text('not-yet.txt')
  .split('\n')
  .filter((line) => line !== '')
/** What of the contract is to be served by now. */
const due = buildASTSchema(without(contract, new Set(notYet)))

const inputDefaults = (of: GraphQLSchema) =>
  Object.values(of.getTypeMap())
    .filter(isInputObjectType)
    .flatMap((type) => Object.values(type.getFields()).map((field) => ({ type, field })))
    .map(({ type, field }) => [`${type.name}.${field.name}`, field.defaultValue] as const)

test('the contract is the one that is kept beside the checkout', (context) => {
  const shared = here('../../../shared/api.graphql')
  if (!existsSync(shared)) return context.skip('there is no contract beside this checkout')
  expect(text('api.graphql')).toBe(readFileSync(shared, 'utf8'))
})

test('the served schema is valid', () => {
  expect(validateSchema(schema)).toEqual([])
})

test('no client of the contract breaks on the served schema', () => {
  const told = findBreakingChanges(due, schema).map(({ description }) => description)
  expect(told).toEqual([])
})

test('unions, enums, interfaces and the defaults of arguments are exactly those of the contract', () => {
  const more: string[] = [
    DangerousChangeType.OPTIONAL_ARG_ADDED,
    DangerousChangeType.OPTIONAL_INPUT_FIELD_ADDED,
  ]
  const told = findDangerousChanges(due, schema)
    .filter(({ type }) => !more.includes(type))
    .map(({ description }) => description)
  expect(told).toEqual([])
})

test('the defaults of input fields, and which inputs take exactly one field, are those of the contract', () => {
  const served = new Map(inputDefaults(schema))
  for (const [coordinate, value] of inputDefaults(due)) {
    expect([coordinate, served.get(coordinate)]).toEqual([coordinate, value])
  }
  const oneOf = (of: GraphQLSchema) =>
    Object.values(of.getTypeMap())
      .filter(isInputObjectType)
      .filter((type) => type.isOneOf)
      .map(({ name }) => name)
      .sort()
  expect(oneOf(schema)).toEqual(oneOf(due))
})

test('what is not served yet is listed, sorted, and only while that is so', () => {
  const promised = describedCoordinates(buildASTSchema(contract))
  const served = describedCoordinates(schema)
  expect(notYet).toEqual([...new Set(notYet)].sort())
  expect(notYet.filter((coordinate) => !promised.has(coordinate))).toEqual([])
  expect(notYet.filter((coordinate) => served.has(coordinate))).toEqual([])
})

test('everything that is served is described', () => {
  const bare = [...describedCoordinates(schema)].filter(([, description]) => !description)
  expect(bare.map(([coordinate]) => coordinate)).toEqual([])
})

test('the printed schema is the committed one; UPDATE_SCHEMA=1 writes it where that breaks no client', () => {
  const printed = `${printSchema(lexicographicSortSchema(schema))}\n`
  const committed = here('../../schema.graphql')
  if (process.env['UPDATE_SCHEMA'] !== undefined) {
    const before = buildSchema(readFileSync(committed, 'utf8'))
    const broken = breakingDifferences(before, schema)
    if (process.env['UPDATE_SCHEMA'] !== 'breaking') expect(broken).toEqual([])
    writeFileSync(committed, printed)
  }
  expect(readFileSync(committed, 'utf8')).toBe(printed)
})
