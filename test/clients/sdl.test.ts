import { readFileSync, writeFileSync } from 'node:fs'
import { buildSchema, isInputObjectType } from 'graphql'
import { expect, test } from 'vitest'

const at = (name: string) => new URL(`../../${name}`, import.meta.url)
const read = (name: string) => readFileSync(at(name), 'utf8')

test('the schema for generators is the printed one without @oneOf; UPDATE_SCHEMA=1 writes it', () => {
  const plain = read('schema.graphql').replaceAll(/^(input \w+) @oneOf/gm, '$1')
  if (process.env['UPDATE_SCHEMA'] === '1') writeFileSync(at('schema.client.graphql'), plain)
  expect(read('schema.client.graphql')).toBe(plain)
  const inputs = Object.values(buildSchema(plain).getTypeMap()).filter(isInputObjectType)
  expect(inputs.filter(({ isOneOf }) => isOneOf)).toEqual([])
})
