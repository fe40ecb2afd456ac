import { failed, type Outcome } from './prober.ts'

/** Troubles of this machine: they say nothing about a backend (errno's names, `man 3 errno`). */
const OWN = new Set(['EMFILE', 'ENFILE', 'ENOBUFS', 'ENOMEM', 'EADDRNOTAVAIL', 'EACCES', 'EPERM'])

/** What an error of a socket says about the backend at `place`; undefined: nothing. */
export function socketFailure(error: unknown, place: string): Outcome | undefined {
  const code = codeOf(error)
  switch (code) {
    case 'ECONNREFUSED':
      return failed('Refused', `connection refused by ${place}`)
    case 'ECONNRESET':
    case 'EPIPE':
      return failed('Reset', `connection closed by ${place} before it answered`)
    case 'ETIMEDOUT':
      return failed('TimedOut', `no answer from ${place}`)
    case 'EHOSTUNREACH':
    case 'ENETUNREACH':
    case 'EHOSTDOWN':
      return failed('Unreachable', `no route to ${place}`)
  }
  if (code === undefined || OWN.has(code)) return undefined
  if (code.startsWith('HPE_')) return failed('NotHttp', `${place} does not answer in HTTP`)
  if (code === 'EPROTO' || code.startsWith('ERR_SSL')) {
    return failed('NotTls', `no TLS connection with ${place}`)
  }
  return failed('Failed', `the connection to ${place} failed (${code})`)
}

/** Nobody answered in time. */
export const timedOut = (place: string, milliseconds: number): Outcome =>
  failed('TimedOut', `no answer from ${place} within ${milliseconds / 1_000} s`)

/** Node's name for what went wrong. */
export const codeOf = (error: unknown): string | undefined =>
  error instanceof Error && 'code' in error && typeof error.code === 'string'
    ? error.code
    : undefined
