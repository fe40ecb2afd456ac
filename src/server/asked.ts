import type { IncomingMessage } from 'node:http'
import {
  type DocumentNode,
  type GraphQLSchema,
  getOperationAST,
  type OperationDefinitionNode,
} from 'graphql'
import type { Documents } from './documents.ts'

/** The parameters of a request as its client sent them. */
export type Parameters = Record<string, unknown>

/** An operation that can be executed. */
export type Asked = {
  schema: GraphQLSchema
  document: DocumentNode
  operation: OperationDefinitionNode
  variables: { readonly [name: string]: unknown } | null
  operationName: string | null
  hideSuggestions: boolean
  cost: number
}

const KNOWN = new Set(['query', 'variables', 'operationName', 'extensions'])

/** The operation that is asked for; undefined where anything about it is wrong or unusual. */
export function askedIn(parameters: Parameters, documents: Documents): Asked | undefined {
  const { query, variables = null, operationName = null, extensions = null } = parameters
  if (typeof query !== 'string' || !isObjectOrNull(variables)) return undefined
  if (!isObjectOrNull(extensions)) return undefined
  if (operationName !== null && typeof operationName !== 'string') return undefined
  for (const name in parameters) if (!KNOWN.has(name)) return undefined
  const { document, errors, costOf } = documents.check(query)
  if (document === undefined || errors.length > 0) return undefined
  const operation = getOperationAST(document, operationName)
  if (operation == null) return undefined
  const cost = costOf(operation, variables)
  const { schema, hideSuggestions } = documents
  return { schema, document, operation, variables, operationName, hideSuggestions, cost }
}

/** The parameters in a URL; undefined where they can't be read. */
export function parametersIn({ url = '' }: IncomingMessage): Parameters | undefined {
  const at = url.indexOf('?')
  if (at === -1) return undefined
  const parameters: Parameters = {}
  for (const [name, text] of new URLSearchParams(url.slice(at))) {
    if (name in parameters) return undefined
    try {
      const json = name === 'variables' || name === 'extensions'
      parameters[name] = json ? JSON.parse(text) : text
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error
      return undefined
    }
  }
  return parameters
}

function isObjectOrNull(value: unknown): value is Asked['variables'] {
  return value === null || (typeof value === 'object' && !Array.isArray(value))
}
