import { unavailable } from '../../schema/failures.ts'
import { ANYWHERE, type Caller, type Identify } from '../caller.ts'
import type { Authorize, Grants } from './authorize.ts'
import { IssuerUnreachable } from './keys.ts'
import { ReviewsUnavailable } from './reviews.ts'
import type { Token, Tokens } from './tokens.ts'

/** RFC 6750, 2.1; far longer than any token that an issuer makes. */
const BEARER = /^Bearer +([\w.~+/-]{1,16384}=*)$/i

/** Takes callers for whom their bearer token says they are. */
export function identifyBearer(tokens: Tokens, authorize: Authorize): Identify {
  const identified = (token: Token | null, where: string) => {
    if (token === null) return null
    const grants = authorize(token, where)
    return grants instanceof Promise
      ? grants.then((settled) => callerOf(token, settled, where))
      : callerOf(token, grants, where)
  }
  return ({ headers }, where) => {
    const [, text] = BEARER.exec(headers.authorization ?? '') ?? []
    if (text === undefined) return null
    const token = tokens.verify(text)
    if (token instanceof Promise) {
      return token.then((settled) => identified(settled, where)).catch(explain)
    }
    const caller = identified(token, where)
    return caller instanceof Promise ? caller.catch(explain) : caller
  }
}

/** What can't be told now is no refusal: clients throw tokens away that are refused. */
function explain(error: unknown): never {
  if (error instanceof IssuerUnreachable || error instanceof ReviewsUnavailable) {
    throw unavailable('Who you are and what you may do can not be checked now; try again.')
  }
  throw error
}

const callers = new WeakMap<Grants, Map<boolean, Caller>>()

/** The same object for the same grants, since what is derived from it is kept by object. */
function callerOf(token: Token, grants: Grants, where: string): Caller {
  const known = callers.get(grants) ?? new Map<boolean, Caller>()
  callers.set(grants, known)
  const operating = where === ANYWHERE
  const found = known.get(operating)
  if (found !== undefined) return found
  const { subject, email, expiresAt, claims } = token
  // RFC 9068, 2.2: where no person is behind a token, its subject is the client.
  const machine = email === null && claims['client_id'] === subject
  const kind = operating ? 'OPERATOR' : machine ? 'SERVICE_ACCOUNT' : 'USER'
  const caller: Caller = {
    subject,
    email,
    actor: { kind, name: email ?? subject },
    projects: grants,
    expiresAt,
  }
  known.set(operating, caller)
  return caller
}
