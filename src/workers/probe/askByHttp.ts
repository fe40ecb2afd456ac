import { type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { isIP } from 'node:net'
import { checkServerIdentity } from 'node:tls'
import { failed, type HttpQuestion, type Outcome, placeText } from './prober.ts'
import { codeOf, socketFailure, timedOut } from './socketFailure.ts'

/** So much of an answer is read at most; more is not waited for. */
const MOST_READ = 64 * 1_024

/** Where the connection goes, and the address and port that it stands for. */
type Target = { host: string; port: number; address: string; called: number }

/**
 * One GET on a connection of its own. It is well answered with an expected status and all of the body,
 * or 64 KiB of it, in time; a redirect is an answer like any other and isn't followed.
 */
export function askByHttp(
  target: Target,
  question: HttpQuestion,
  timeoutMilliseconds: number,
  signal: AbortSignal,
): Promise<Outcome> {
  const place = placeText(target.address, target.called)
  return new Promise((resolve, reject) => {
    const asked = send(target, question)
    const end = (outcome: Outcome) => {
      stop()
      resolve(outcome)
    }
    const stop = () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', abort)
      asked.destroy()
    }
    const abort = () => {
      stop()
      reject(signal.reason)
    }
    const timer = setTimeout(() => end(timedOut(place, timeoutMilliseconds)), timeoutMilliseconds)
    signal.addEventListener('abort', abort)
    // Stays on: destroying the request makes one more error, which nobody else would hear.
    asked.on('error', (error) => {
      const failure = certificateFailure(error, asked, place) ?? socketFailure(error, place)
      if (failure) return end(failure)
      stop()
      reject(error)
    })
    asked.once('upgrade', (answer, socket) => {
      socket.destroy()
      end(judged(answer, question, place))
    })
    asked.once('response', (answer) => {
      const outcome = judged(answer, question, place)
      if (!outcome.ok) return end(outcome)
      let read = 0
      answer.on('data', (chunk: Buffer) => {
        read += chunk.length
        if (read >= MOST_READ) end(outcome)
      })
      answer.once('end', () => end(outcome))
      answer.on('error', () =>
        end(failed('Reset', `${place} broke off in the middle of its answer`)),
      )
    })
    asked.end()
  })
}

function send({ host, port, address, called }: Target, question: HttpQuestion): ClientRequest {
  const secure = question.scheme === 'HTTPS'
  const standard = called === (secure ? 443 : 80)
  const own = standard
    ? placeText(address, called).replace(/:\d+$/, '')
    : placeText(address, called)
  const options = {
    host,
    port,
    path: question.path,
    method: 'GET',
    agent: false,
    headers: { host: question.host ?? own, 'user-agent': 'load-balancer-health-check' },
  }
  if (!secure) return httpRequest(options)
  const name = question.host === null ? address : nameIn(question.host)
  return httpsRequest({
    ...options,
    // Server Name Indication holds no addresses (RFC 6066, 3).
    servername: isIP(name) === 0 ? name : '',
    rejectUnauthorized: question.verifyCertificate,
    checkServerIdentity: (_, certificate) => checkServerIdentity(name, certificate),
  })
}

/** The name in a Host header: without port, and without the brackets of an address. */
const nameIn = (host: string): string =>
  isIP(host) > 0 ? host : host.replace(/:\d*$/, '').replace(/^\[(.*)\]$/, '$1')

function judged(answer: IncomingMessage, question: HttpQuestion, place: string): Outcome {
  const status = answer.statusCode ?? 0
  return question.expectedStatuses.some(({ from, to }) => from <= status && status <= to)
    ? { ok: true }
    : failed('UnexpectedStatus', `${place} answered with status ${status}`)
}

/** TLS was spoken, and its certificate is why the connection isn't used. */
function certificateFailure(
  error: unknown,
  { socket }: ClientRequest,
  place: string,
): Outcome | undefined {
  const code = codeOf(error)
  const doubted = socket !== null && 'authorizationError' in socket && socket.authorizationError
  return doubted
    ? failed('NotTrusted', `the certificate of ${place} is not trusted (${code ?? 'unknown'})`)
    : undefined
}
