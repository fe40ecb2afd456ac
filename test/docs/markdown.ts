import { readdirSync, readFileSync } from 'node:fs'

const docs = new URL('../../docs/', import.meta.url)

export const document = (name: string): string => readFileSync(new URL(name, docs), 'utf8')

/** The operations of docs/operations, by the names of their files. */
export const operations: ReadonlyMap<string, string> = new Map(
  readdirSync(new URL('operations/', docs))
    .filter((name) => name.endsWith('.graphql'))
    .map((name) => [name, document(`operations/${name}`)]),
)

export type Fence = {
  language: string
  /** What follows the language in the opening line. */
  info: string[]
  text: string
}

/** The fenced blocks of a text, in order. */
export const fencesOf = (text: string): Fence[] =>
  [...text.matchAll(/^```(\w+)([^\n]*)\n([\s\S]*?)^```$/gm)].map(
    ([, language = '', info = '', body = '']) => ({
      language,
      info: info.trim().split(/\s+/).filter(Boolean),
      text: body,
    }),
  )
