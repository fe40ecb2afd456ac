import type { IncomingHttpHeaders } from 'node:http'
import {
  ANYWHERE,
  type Caller,
  EDITOR,
  type Identify,
  OPERATOR,
  permissionIds,
} from '../../src/server/caller.ts'

const LOOPBACK = /^(?:127(?:\.\d{1,3}){3}|::1|::ffff:127(?:\.\d{1,3}){3})$/
const LOOPBACK_HOST = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d+)?$/i
const FORWARDED = ['forwarded', 'x-forwarded-for', 'x-real-ip', 'via']

/**
 * Takes whoever calls from this machine without a token for the demo's user: editor of the projects, and
 * operator. Not so what only looks local: what a proxy passed on, a name that was bent to 127.0.0.1, a
 * page of somebody else's in the browser (pages may open websockets anywhere).
 */
export function identifyLoopback(projects: readonly string[]): Identify {
  const editor = permissionIds(EDITOR)
  const demo: Caller = {
    subject: 'demo',
    email: 'demo@example.com',
    actor: { kind: 'USER', name: 'demo' },
    projects: new Map([
      ...projects.map((name) => [name, editor] as const),
      [ANYWHERE, permissionIds(OPERATOR)],
    ]),
  }
  return ({ headers, remoteAddress }) => {
    const local = remoteAddress !== undefined && LOOPBACK.test(remoteAddress)
    if (!local || headers.authorization !== undefined || isForeign(headers)) return null
    return demo
  }
}

/** Whoever brings a token is whom it names; without one it has to be somebody on this machine. */
export function identifyEither(local: Identify, byToken: Identify): Identify {
  return (credentials, where) =>
    (credentials.headers.authorization === undefined ? local : byToken)(credentials, where)
}

function isForeign(headers: IncomingHttpHeaders): boolean {
  const { host, origin } = headers
  if (FORWARDED.some((name) => headers[name] !== undefined)) return true
  if (host === undefined || !LOOPBACK_HOST.test(host)) return true
  return origin !== undefined && origin !== `http://${host}`
}
