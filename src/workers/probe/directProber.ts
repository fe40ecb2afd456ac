import { createConnection } from 'node:net'
import { askByHttp } from './askByHttp.ts'
import { failed, type HttpQuestion, type Outcome, type Prober, placeText } from './prober.ts'
import { socketFailure, timedOut } from './socketFailure.ts'

/** Where the connection for an address and port goes; undefined: nobody there. */
export type Locate = (
  address: string,
  port: number,
) => Promise<{ host: string; port: number } | undefined>

/**
 * Connects from where this process stands, with real sockets. With `locate` to somewhere else than the
 * address itself, as where addresses are of a network that this machine isn't part of; messages
 * speak of the address all the same.
 */
export class DirectProber implements Prober {
  readonly #locate: Locate

  constructor(options: { locate?: Locate } = {}) {
    this.#locate = options.locate ?? (async (host, port) => ({ host, port }))
  }

  async connect(
    address: string,
    port: number,
    timeoutMilliseconds: number,
    signal: AbortSignal,
  ): Promise<Outcome> {
    const place = placeText(address, port)
    const target = await this.#locate(address, port)
    signal.throwIfAborted()
    if (target === undefined) return failed('Refused', `connection refused by ${place}`)
    return new Promise((resolve, reject) => {
      const socket = createConnection({ host: target.host, port: target.port })
      const end = () => {
        clearTimeout(timer)
        signal.removeEventListener('abort', abort)
        socket.destroy()
      }
      const abort = () => {
        end()
        reject(signal.reason)
      }
      const timer = setTimeout(() => {
        end()
        resolve(timedOut(place, timeoutMilliseconds))
      }, timeoutMilliseconds)
      signal.addEventListener('abort', abort)
      socket.once('connect', () => {
        end()
        resolve({ ok: true })
      })
      socket.on('error', (error) => {
        end()
        const failure = socketFailure(error, place)
        if (failure) resolve(failure)
        else reject(error)
      })
    })
  }

  async http(
    address: string,
    port: number,
    question: HttpQuestion,
    timeoutMilliseconds: number,
    signal: AbortSignal,
  ): Promise<Outcome> {
    const target = await this.#locate(address, port)
    signal.throwIfAborted()
    if (target === undefined) {
      return failed('Refused', `connection refused by ${placeText(address, port)}`)
    }
    return askByHttp({ ...target, address, called: port }, question, timeoutMilliseconds, signal)
  }
}
