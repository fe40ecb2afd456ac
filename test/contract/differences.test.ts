import { readFileSync } from 'node:fs'
import { buildSchema } from 'graphql'
import { describe, expect, test } from 'vitest'
import { schema } from '../../src/server/schema.ts'
import { breakingDifferences } from './differences.ts'

const committed = readFileSync(new URL('../../schema.graphql', import.meta.url), 'utf8')

test('the served schema breaks no client of the committed one', () => {
  expect(breakingDifferences(buildSchema(committed), schema)).toEqual([])
})

describe('a difference that breaks clients is named:', () => {
  const before = buildSchema(committed)
  const broken = (change: [from: string | RegExp, to: string]) => {
    const changed = committed.replace(...change)
    expect(changed).not.toBe(committed)
    return breakingDifferences(before, buildSchema(changed))
  }

  test.each<[string, [string | RegExp, string], string]>([
    [
      'a field that is gone',
      [/ {2}""".*"""\n {2}phase: LoadBalancerPhase!\n/, ''],
      'LoadBalancerStatus.phase',
    ],
    [
      'a field that may be null',
      ['  generation: Int!', '  generation: Int'],
      '.generation changed type from Int! to Int',
    ],
    [
      'a value that is gone',
      [/ {2}""".*"""\n {2}CLIENT_IP\n/, ''],
      'CLIENT_IP was removed from enum type SessionAffinity',
    ],
    [
      'an argument that is demanded',
      ['vpcByName(', 'vpcByName(region: String!, '],
      'required arg region on Query.vpcByName was added',
    ],
    [
      'a member of a result',
      [/(union DeleteLoadBalancerResult = )/, '$1NameTaken | '],
      'NameTaken was added to union type DeleteLoadBalancerResult',
    ],
    [
      'a default of an input',
      ['deletionProtection: Boolean! = false', 'deletionProtection: Boolean! = true'],
      'deletionProtection has changed defaultValue from false to true',
    ],
  ])('%s', (_what, change, named) => {
    expect(broken(change)).toEqual(expect.arrayContaining([expect.stringContaining(named)]))
  })

  test('what only adds to it is none', () => {
    expect(broken(['type Query {', 'type Query {\n  news: String'])).toEqual([])
    expect(
      broken([/input LoadBalancerFilter \{/, 'input LoadBalancerFilter {\n  news: String']),
    ).toEqual([])
  })
})
