import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { ConfigurationError } from '../config/environment.ts'
import { badUserInput } from '../schema/failures.ts'
import type { Documents } from './documents.ts'

type Body = Record<string, unknown>

/**
 * Documents that clients may name by their hash instead of sending them: as `documentId`
 * (`sha256:<hex>`, GraphQL over HTTP's draft) or as `extensions.persistedQuery.sha256Hash`.
 */
export class PersistedDocuments {
  readonly #documents: ReadonlyMap<string, string>

  constructor(documents: ReadonlyMap<string, string> = new Map()) {
    this.#documents = documents
  }

  /** Reads a JSON object of documents by the hex of their SHA-256; each has to be valid for one of the schemas. */
  static async read(path: string, schemas: readonly Documents[]): Promise<PersistedDocuments> {
    const wrong = (what: string) =>
      new ConfigurationError(
        'PERSISTED_DOCUMENTS',
        `a JSON file of documents by the hex of their SHA-256, but ${what}`,
        path,
      )
    let parsed: unknown
    try {
      parsed = JSON.parse(await readFile(path, 'utf8'))
    } catch (error) {
      throw wrong(error instanceof SyntaxError ? 'it is no JSON' : 'it can not be read')
    }
    if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) {
      throw wrong('it holds no object')
    }
    const documents = new Map<string, string>()
    for (const [hash, text] of Object.entries(parsed)) {
      if (typeof text !== 'string') throw wrong(`${hash} is no text`)
      const right = createHash('sha256').update(text).digest('hex')
      if (hash !== right) throw wrong(`the one named ${hash} has ${right}`)
      const [error, ...others] = schemas.map((schema) => schema.check(text).errors[0])
      if (error !== undefined && !others.includes(undefined)) {
        throw wrong(`${hash} is not valid: ${error.message}`)
      }
      documents.set(hash, text)
    }
    return new PersistedDocuments(documents)
  }

  /** The request with the document that it names. One that it brings along is taken as it is. */
  resolve(body: Body): Body {
    // Where a protocol wants a query in any case it is empty.
    const isSent = typeof body['query'] === 'string' && body['query'] !== ''
    if (isSent && body['documentId'] === undefined) return body
    const hash = hashIn(body)
    const { documentId, ...others } = body
    if (isSent || hash === undefined) return documentId === undefined ? body : others
    const query = this.#documents.get(hash)
    // Clients look for these words, and send the document itself then.
    if (query === undefined) throw badUserInput('PersistedQueryNotFound', 400)
    return { ...others, query }
  }
}

function hashIn({ documentId, extensions }: Body): string | undefined {
  if (typeof documentId === 'string') return documentId.replace(/^sha256:/, '')
  const persisted = member(extensions, 'persistedQuery')
  const hash = member(persisted, 'sha256Hash')
  return typeof hash === 'string' ? hash : undefined
}

function member(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null
    ? Object.entries(value).find(([key]) => key === name)?.[1]
    : undefined
}
