import { basename } from 'node:path'
import { describe, expect, test } from 'vitest'
import { filesBelow, textOf } from './support/imports.ts'

const own = ['src', 'dev', 'test', 'bench'].flatMap(filesBelow)
const sources = own.filter((path) => path.endsWith('.ts'))

// Written apart, so that this file doesn't find itself.
const silenced = new RegExp(
  [
    ['@ts', 'ignore'],
    ['@ts', 'nocheck'],
    ['@ts', 'expect-error'],
    ['biome', 'ignore'],
    ['eslint', 'disable'],
  ]
    .map((words) => words.join('-'))
    .join('|'),
)
const anything = /(?:[:<|&,(]\s*|\bas\s+|=>\s*)any\b(?!\s*[:(?'])/

/** The text without comments and without what is in quotes. */
const code = (text: string): string =>
  text
    .replace(/^\s*(?:\/\/|\/?\*).*$|\s\/\/ .*$/gm, '')
    .replace(/'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`/g, "''")

describe('the sources', () => {
  test('never silence the checkers', () => {
    expect(sources.filter((path) => silenced.test(textOf(path)))).toEqual([])
  })

  test('have no any', () => {
    expect(sources.filter((path) => anything.test(code(textOf(path))))).toEqual([])
  })

  test('have no file that only passes on others', () => {
    expect(own.filter((path) => /^index\.[cm]?[jt]s$/.test(basename(path)))).toEqual([])
  })

  test('have no room without a noun', () => {
    const vague = /\/(?:utils?|helpers?|common|services?|repositories|dto|misc|shared|lib)\//
    expect(own.filter((path) => vague.test(path))).toEqual([])
  })

  test('have no file of more than 350 lines in src/ and dev/', () => {
    const long = sources
      .filter((path) => path.startsWith('src/') || path.startsWith('dev/'))
      .filter((path) => textOf(path).trimEnd().split('\n').length > 350)
    expect(long).toEqual([])
  })
})

describe('the checks of sources', () => {
  test.each(['x: any', 'x as any', 'Map<string, any>', 'f(): any {', 'any[] | any'])(
    'find any in %j',
    (text) => expect(anything.test(text)).toBe(true),
  )

  test.each(['x: unknown', 'if (x.any)', 'in any case', 'expect.any(String)', '{ any: 1 }'])(
    'find none in %j',
    (text) => expect(anything.test(text)).toBe(false),
  )

  test('find what silences', () => {
    expect(silenced.test(`// ${['@ts', 'ignore'].join('-')}`)).toBe(true)
    expect(silenced.test('// ignore')).toBe(false)
  })
})
