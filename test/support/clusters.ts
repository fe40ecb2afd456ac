import { type IncomingMessage, request } from 'node:http'
import { inject, onTestFinished } from 'vitest'
import {
  haveRealApiServer,
  type RealApiServer,
  type RealApiServerOptions,
  startRealApiServer,
} from '../../dev/kube-real/server.ts'
import type { SharedServer } from './cluster-broker.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** The socket of the run's cluster broker. */
    clusters: string
  }
}

/** Whether tests against real API servers can run; a skipped test fails the run in CI. */
export const realClusters = haveRealApiServer()

/** For the names of tests that are skipped without it. */
export const REAL = realClusters
  ? 'a real API server'
  : 'a real API server (run npm run kube:build)'

/**
 * One of the two real API servers that all files of a run share, with our CRDs: put what you write
 * into a namespace of your own, and leave CRDs alone.
 */
export function sharedRealServer(which: 0 | 1 = 0): Promise<SharedServer> {
  return new Promise((resolve, reject) => {
    ask(`/shared/${which}`, reject, (answer) => {
      let text = ''
      answer.setEncoding('utf8')
      answer.on('data', (chunk: string) => {
        text += chunk
      })
      answer.once('end', () => {
        if (answer.statusCode === 200) resolve(JSON.parse(text))
        else reject(new Error(text))
      })
    })
  })
}

/**
 * A real API server that may be restarted, refilled and broken. One file at a time has one, from
 * here until it is closed.
 */
export async function ownRealServer(options: RealApiServerOptions): Promise<RealApiServer> {
  const giveBack = await turn()
  try {
    const server = await startRealApiServer(options)
    return {
      ...server,
      close: async () => {
        await server.close()
        giveBack()
      },
    }
  } catch (error) {
    giveBack()
    throw error
  }
}

/** The same, closed when the test ends. */
export async function realServerForTest(options: RealApiServerOptions): Promise<RealApiServer> {
  const server = await ownRealServer(options)
  onTestFinished(() => server.close())
  return server
}

/**
 * Waits for this file's turn to start a real API server (or a few) by itself, and answers how to give
 * it back; whoever dies gives it back as well.
 */
export function turn(): Promise<() => void> {
  return new Promise((resolve, reject) => {
    const sent = ask('/turn', reject, (answer) => {
      // Cut off by ourselves, or by the end of the run.
      answer.on('error', () => undefined)
      answer.once('data', () => resolve(() => sent.destroy()))
    })
  })
}

function ask(
  path: string,
  failed: (error: Error) => void,
  answered: (answer: IncomingMessage) => void,
) {
  const sent = request({ socketPath: inject('clusters'), path }, answered)
  sent.on('error', failed)
  sent.end()
  return sent
}
