import type { Json, JsonObject } from './json.ts'

export type Cause = { reason: string; message: string; field: string }

/** What resource an answer is about: its `details`. */
export type Subject = { group: string; plural: string; kind: string }

type RefusalParts = {
  code: number
  reason?: string
  message: string
  details?: JsonObject
  /** The Status's own list metadata: a continue token to go on with. */
  metadata?: JsonObject
  retryAfterSeconds?: number
}

/** A request that isn't carried out, as the Status object that says so. Returned, never thrown. */
export class Refusal {
  readonly code: number
  readonly reason: string | undefined
  readonly message: string
  readonly status: JsonObject
  readonly retryAfterSeconds: number | undefined

  constructor(parts: RefusalParts) {
    this.code = parts.code
    this.reason = parts.reason
    this.message = parts.message
    this.retryAfterSeconds = parts.retryAfterSeconds
    const details: JsonObject = { ...parts.details }
    if (parts.retryAfterSeconds !== undefined)
      details['retryAfterSeconds'] = parts.retryAfterSeconds
    this.status = {
      kind: 'Status',
      apiVersion: 'v1',
      metadata: parts.metadata ?? {},
      status: 'Failure',
      message: parts.message,
      ...(parts.reason === undefined ? {} : { reason: parts.reason }),
      ...(parts.details === undefined && parts.retryAfterSeconds === undefined ? {} : { details }),
      code: parts.code,
    }
  }
}

const qualified = (subject: Subject): string =>
  subject.group === '' ? subject.plural : `${subject.plural}.${subject.group}`

const details = (subject: Subject, name: string, causes: Cause[] = []): JsonObject => ({
  ...(name === '' ? {} : { name }),
  ...(subject.group === '' ? {} : { group: subject.group }),
  kind: subject.plural,
  ...(causes.length === 0 ? {} : { causes: causes.map((cause) => ({ ...cause })) }),
})

/** 400: the request itself makes no sense. */
export const badRequest = (message: string): Refusal =>
  new Refusal({ code: 400, reason: 'BadRequest', message })

/** 401: no known token or client certificate. */
export const unauthorized = (): Refusal =>
  new Refusal({ code: 401, reason: 'Unauthorized', message: 'Unauthorized' })

/** 404: no such object. */
export const notFound = (subject: Subject, name: string): Refusal =>
  new Refusal({
    code: 404,
    reason: 'NotFound',
    message: `${qualified(subject)} "${name}" not found`,
    details: details(subject, name),
  })

/** 404: nothing is served under this path of a group that is. */
export const nothingServed = (subject?: Subject, name = ''): Refusal =>
  new Refusal({
    code: 404,
    reason: 'NotFound',
    message: 'the server could not find the requested resource',
    details: subject === undefined ? {} : details(subject, name),
  })

/** 405: the path exists, but not for this method. */
export const methodNotAllowed = (subject?: Subject): Refusal =>
  new Refusal({
    code: 405,
    reason: 'MethodNotAllowed',
    message: 'the server does not allow this method on the requested resource',
    details: subject === undefined ? {} : details(subject, ''),
  })

/** 409: the name is taken. */
export const alreadyExists = (subject: Subject, name: string): Refusal =>
  new Refusal({
    code: 409,
    reason: 'AlreadyExists',
    message: `${qualified(subject)} "${name}" already exists`,
    details: details(subject, name),
  })

/** 409: a precondition (resourceVersion, uid) doesn't hold, or field managers disagree. */
export const conflict = (
  subject: Subject,
  name: string,
  why: string,
  causes: Cause[] = [],
): Refusal =>
  new Refusal({
    code: 409,
    reason: 'Conflict',
    message:
      causes.length > 0
        ? why
        : `Operation cannot be fulfilled on ${qualified(subject)} "${name}": ${why}`,
    details:
      causes.length > 0
        ? { causes: causes.map((cause) => ({ ...cause })) }
        : details(subject, name),
  })

/** 409 for a version that isn't the current one. */
export const staleVersion = (subject: Subject, name: string): Refusal =>
  conflict(subject, name, 'the object has been modified; read it again and retry')

/** 403, with causes where a reason is to be told apart. */
export const forbidden = (
  subject: Subject,
  name: string,
  why: string,
  causes: Cause[] = [],
): Refusal =>
  new Refusal({
    code: 403,
    reason: 'Forbidden',
    message: `${qualified(subject)} "${name}" is forbidden: ${why}`,
    details: details(subject, name, causes),
  })

/** 410: the version asked for is no longer known. */
export const expired = (message: string, metadata?: JsonObject): Refusal =>
  new Refusal({
    code: 410,
    reason: 'Expired',
    message,
    ...(metadata === undefined ? {} : { metadata }),
  })

/** 500: a resourceVersion that isn't a number. Like all that isn't foreseen, it has no reason. */
export const noVersion = (text: string): Refusal =>
  new Refusal({ code: 500, message: `not a version: ${JSON.stringify(text)}` })

/** 415: the body's media type isn't one this verb reads. */
export const unsupportedMediaType = (accepted: string[]): Refusal =>
  new Refusal({
    code: 415,
    reason: 'UnsupportedMediaType',
    message: `the body of the request was in an unknown format - accepted media types include: ${accepted.join(', ')}`,
  })

/** 500: a server-side apply that doesn't fit the schema. It carries no reason, as in real servers. */
export const untypable = (object: string, problem: string): Refusal =>
  new Refusal({
    code: 500,
    message: `failed to create typed patch object (${object}): ${problem}`,
  })

/** 422: the object as a whole is understood, but values of it are not allowed. */
export function invalid(
  subject: { group: string; kind: string },
  name: string,
  causes: Cause[],
): Refusal {
  const texts = causes.map((cause) => `${cause.field}: ${cause.message}`)
  const told = texts.length === 1 ? (texts[0] ?? '') : `[${texts.join(', ')}]`
  return new Refusal({
    code: 422,
    reason: 'Invalid',
    message: `${subject.kind}${subject.group === '' ? '' : `.${subject.group}`} "${name}" is invalid: ${told}`,
    details: {
      ...(name === '' ? {} : { name }),
      ...(subject.group === '' ? {} : { group: subject.group }),
      kind: subject.kind,
      causes: causes.map((cause) => ({ ...cause })),
    },
  })
}

/** How a value is shown in messages. */
export const shown = (value: Json | undefined): string => JSON.stringify(value ?? null)

export const cause = {
  required: (field: string, message = 'Required value'): Cause => ({
    reason: 'FieldValueRequired',
    message,
    field,
  }),
  invalid: (field: string, value: Json | undefined, why: string): Cause => ({
    reason: 'FieldValueInvalid',
    message: `Invalid value: ${shown(value)}: ${why}`,
    field,
  }),
  type: (field: string, value: Json | undefined, type: string): Cause => ({
    reason: 'FieldValueTypeInvalid',
    message: `Invalid value: ${shown(value)}: ${field} in body must be of type ${type}: ${shown(value)}`,
    field,
  }),
  unsupported: (field: string, value: Json, allowed: Json[]): Cause => ({
    reason: 'FieldValueNotSupported',
    message: `Unsupported value: ${shown(value)}: supported values: ${allowed.map(shown).join(', ')}`,
    field,
  }),
  duplicate: (field: string, value: Json): Cause => ({
    reason: 'FieldValueDuplicate',
    message: `Duplicate value: ${shown(value)}`,
    field,
  }),
  tooLong: (field: string, limit: number): Cause => ({
    reason: 'FieldValueTooLong',
    message: `Too long: may not be more than ${limit} bytes`,
    field,
  }),
  tooMany: (field: string, count: number, limit: number): Cause => ({
    reason: 'FieldValueTooMany',
    message: `Too many: ${count}: must have at most ${limit} items`,
    field,
  }),
  forbidden: (field: string, why: string): Cause => ({
    reason: 'FieldValueForbidden',
    message: `Forbidden: ${why}`,
    field,
  }),
}
