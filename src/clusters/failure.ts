import type { Resource } from '../rules/objects.ts'
import { ApiFailure } from './cluster.ts'

type Answer = { status: number; retryAfter: string | undefined; text: string }

/**
 * The failure an HTTP answer of 400 and above tells. `about`: of which kind what was called is, which an answer
 * that is no Status (the kind isn't served) doesn't tell.
 */
export function failureOfAnswer(answer: Answer, about?: Resource): ApiFailure {
  const text = answer.text.slice(0, 300).trim() || `HTTP ${answer.status}`
  return failureOfStatus(parseJson(answer.text), {
    code: answer.status,
    message: about === undefined ? text : `${about.plural}: ${text}`,
    retryAfterSeconds: seconds(answer.retryAfter),
  })
}

/** The failure a `Status` object tells (an answer's body, or a watch's ERROR event). */
export function failureOfStatus(
  status: unknown,
  otherwise: { code: number; message: string; retryAfterSeconds?: number | undefined },
): ApiFailure {
  const isStatus = isRecord(status) && status['kind'] === 'Status'
  const fields: Record<string, unknown> = isStatus ? status : {}
  const details = isRecord(fields['details']) ? fields['details'] : {}
  const code = typeof fields['code'] === 'number' ? fields['code'] : otherwise.code
  const reason = typeof fields['reason'] === 'string' ? fields['reason'] : ''
  const message = typeof fields['message'] === 'string' ? fields['message'] : otherwise.message
  return new ApiFailure({
    code,
    reason: reason === '' ? undefined : reason,
    message,
    retryAfterSeconds: seconds(details['retryAfterSeconds']) ?? otherwise.retryAfterSeconds,
    schemaMismatch: code === 500 && tellsSchemaMismatch(message),
    namespaceMissing: tellsNamespaceMissing(code, details),
  })
}

/** A write into a namespace that isn't there is 404 about the namespace; into one that ends, 403 with a cause. */
function tellsNamespaceMissing(code: number, details: Record<string, unknown>): boolean {
  if (code === 404) return details['kind'] === 'namespaces'
  const causes = Array.isArray(details['causes']) ? details['causes'] : []
  const isTerminating = (cause: unknown) =>
    isRecord(cause) && cause['reason'] === 'NamespaceTerminating'
  return code === 403 && causes.some(isTerminating)
}

/**
 * The one place that reads a message. Server-side apply of a field the schema lacks, or of a
 * duplicate in a set, is a 500 without reason or cause (tried on kube-apiserver 1.36.3): only the
 * text tells it from a server in trouble, and a retry can't help. Where the text changes one day,
 * such failures are retried like any 500, slower but not wrong.
 */
function tellsSchemaMismatch(message: string): boolean {
  return (
    message.includes('failed to create typed patch object') ||
    message.includes('field not declared in schema')
  )
}

export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Kubernetes sends whole seconds, never a date. */
function seconds(value: unknown): number | undefined {
  if (value === undefined || value === null || value === '') return undefined
  const number = Number(value)
  return Number.isFinite(number) && number > 0 ? number : undefined
}
