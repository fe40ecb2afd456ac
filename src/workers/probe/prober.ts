import { isIPv6 } from 'node:net'
import type { HttpProbe } from '../../domain/records.ts'

/** What a failed probe met. */
export type ProbeFailure =
  | 'Refused'
  | 'TimedOut'
  | 'Unreachable'
  | 'Reset'
  | 'UnexpectedStatus'
  | 'NotHttp'
  | 'NotTls'
  | 'NotTrusted'
  | 'Failed'

/** How a probe ended; `message` is in a tenant's words. */
export type Outcome = { ok: true } | { ok: false; reason: ProbeFailure; message: string }

/** What is asked by HTTP, and which answers are good. */
export type HttpQuestion = Pick<
  HttpProbe,
  'scheme' | 'host' | 'path' | 'expectedStatuses' | 'verifyCertificate'
>

/**
 * Asks backends whether they are there. Rejects only where nothing can be said about the backend: the
 * signal ended it, or this machine lacks what a probe needs (sockets, ports, memory).
 */
export type Prober = {
  connect(
    address: string,
    port: number,
    timeoutMilliseconds: number,
    signal: AbortSignal,
  ): Promise<Outcome>
  http(
    address: string,
    port: number,
    question: HttpQuestion,
    timeoutMilliseconds: number,
    signal: AbortSignal,
  ): Promise<Outcome>
}

export const failed = (reason: ProbeFailure, message: string): Outcome => ({
  ok: false,
  reason,
  message,
})

/** An address and a port as one reads them: 192.0.2.1:80, [2001:db8::1]:80. */
export const placeText = (address: string, port: number): string =>
  isIPv6(address) ? `[${address}]:${port}` : `${address}:${port}`
