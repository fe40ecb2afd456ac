import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { isIPv6 } from 'node:net'
import { type Logger, pino } from 'pino'
import { ConfigurationError } from '../config/environment.ts'
import type { Store } from '../db/client.ts'
import { type EventLog, openEventLog } from '../domain/events/log.ts'
import type { Clock } from '../schema/context.ts'
import type { Identify } from './caller.ts'
import { Cors } from './cors.ts'
import { Documents } from './documents.ts'
import { httpHandler } from './http.ts'
import { clientAddressBehind } from './limits/clientAddress.ts'
import { LIMITS, type Limits } from './limits/limits.ts'
import { Toll } from './limits/toll.ts'
import { ApiMetrics } from './metrics.ts'
import { PersistedDocuments } from './persisted.ts'
import { operatorSchema, schema } from './schema.ts'
import { Door } from './scope.ts'
import { Streams } from './streams.ts'
import { websocketHandler } from './websocket.ts'

/** Longer than the idle timeout of the usual proxies (60 s), or they meet closed connections. */
const KEEP_ALIVE = 65_000
/** A request has to have arrived within this time, in milliseconds: bodies are 1 MiB at most. */
const SENDING = 60_000
/** What answers are still under way have this long to end when the server closes, in milliseconds. */
const GRACE = 1_000

export type ServerOptions = {
  store: Store
  /** One of its own where none is given. */
  log?: EventLog
  host: string
  /** 0: a free one. */
  port: number
  identify: Identify
  /** Origins of pages that may call; none by default. */
  corsOrigins?: readonly string[]
  /** Proxies whose word on the client's address is taken; none by default. */
  trustedProxies?: readonly string[]
  limits?: Limits
  /** Whether the schema may be asked about itself; it may. */
  introspection?: boolean
  /** A file of documents that clients may name. */
  persistedDocuments?: string | undefined
  logger?: Logger
  /** Counts what is done; may be of one server only. */
  metrics?: ApiMetrics
  clock?: Clock
}

export type RunningServer = {
  /** Without a path: `http://127.0.0.1:4000`. */
  url: string
  port: number
  /** Ends streams and connections, within 2 s. The store is the caller's to close afterwards. */
  close(): Promise<void>
}

/** Real time. Its timers don't keep the process alive. */
export const systemClock: Clock = {
  now: () => new Date(),
  after(ms, callback) {
    const timer = setTimeout(callback, ms)
    timer.unref()
    return () => clearTimeout(timer)
  },
}

/** Serves the API over HTTP and websockets on one port, until it is closed. */
export async function startServer(options: ServerOptions): Promise<RunningServer> {
  const { store, host, port, identify, clock = systemClock } = options
  const logger = options.logger ?? pino()
  const onError = (err: unknown) => logger.error({ err }, 'the log of changes could not be read')
  const { limits = LIMITS, introspection = true, persistedDocuments } = options
  const documents = {
    tenants: new Documents(schema, { limits, introspection }),
    operators: new Documents(operatorSchema, { limits, introspection }),
  }
  const persisted =
    persistedDocuments === undefined
      ? new PersistedDocuments()
      : await PersistedDocuments.read(persistedDocuments, Object.values(documents))
  const metrics = options.metrics ?? new ApiMetrics()
  const onDelivered = (lagSeconds: number) => metrics.delivered(lagSeconds)
  const log = options.log ?? openEventLog(store, { onError, onDelivered })
  const door = new Door({ store, log, clock, identify })
  const parts = {
    door,
    documents,
    persisted,
    cors: new Cors(options.corsOrigins ?? []),
    toll: new Toll(limits, () => performance.now()),
    streams: new Streams({ door, clock, most: limits.streamsPerCaller }),
    addressOf: clientAddressBehind(options.trustedProxies ?? []),
    limits,
    clock,
    metrics,
    logger,
  }
  const handle = httpHandler(parts)
  const websockets = websocketHandler(parts)
  metrics.watch({ streams: () => parts.streams.count, sockets: () => websockets.count })
  const open = new Set<ServerResponse>()
  const server = createServer(
    { keepAliveTimeout: KEEP_ALIVE, requestTimeout: SENDING },
    (request, response) => {
      if (request.headers.accept?.includes('text/event-stream')) {
        open.add(response)
        response.once('close', () => open.delete(response))
      }
      handle(request, response)
    },
  )
  server.on('upgrade', websockets.upgrade)
  try {
    await listen(server, host, port)
  } catch (error) {
    if (options.log === undefined) log.close()
    throw error
  }
  const address = server.address()
  const bound = typeof address === 'object' && address !== null ? address.port : port
  return {
    url: `http://${isIPv6(host) ? `[${host}]` : host}:${bound}`,
    port: bound,
    async close() {
      const closed = new Promise((resolve) => server.close(resolve))
      // A stream that is cut, not completed, is one that clients take up again elsewhere.
      for (const response of open) response.destroy()
      server.closeIdleConnections()
      const impatient = setTimeout(() => server.closeAllConnections(), GRACE)
      await websockets.close()
      await closed
      clearTimeout(impatient)
      if (options.log === undefined) log.close()
    },
  }
}

async function listen(
  server: ReturnType<typeof createServer>,
  host: string,
  port: number,
): Promise<void> {
  try {
    const listening = once(server, 'listening')
    server.listen(port, host)
    await listening
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined
    if (code === 'EADDRINUSE') {
      throw new ConfigurationError('PORT', 'a port that nothing else listens on', String(port))
    }
    if (code === 'EACCES') {
      throw new ConfigurationError('PORT', 'a port that this user may listen on', String(port))
    }
    if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND') {
      throw new ConfigurationError('HOST', 'an address of this machine', host)
    }
    throw error
  }
}
