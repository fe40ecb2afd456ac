import type { Token } from './tokens.ts'

/** Permission ids by project, or `ANYWHERE` (caller.ts); of the place that is asked for at least. */
export type Grants = ReadonlyMap<string, ReadonlySet<string>>

/** Answers what the holder of a token may do there. Throws when that can't be told. */
export type Authorize = (token: Token, where: string) => Grants | Promise<Grants>

/** `<project>:<permission id>`, where `*` stands for all projects. */
const ENTRY = /^(\*|[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?):([a-z0-9.-]+\/[a-z0-9.-]+)$/

const read = new WeakMap<Token, Grants>()

/** `AUTHZ=claims`: the token itself tells, in its claim `permissions`. What isn't an entry grants nothing. */
export const byClaims: Authorize = (token) => {
  const known = read.get(token)
  if (known !== undefined) return known
  const grants = new Map<string, Set<string>>()
  const { permissions } = token.claims
  for (const entry of Array.isArray(permissions) ? permissions : []) {
    const [, where, permission] = ENTRY.exec(String(entry)) ?? []
    if (where === undefined || permission === undefined) continue
    const granted = grants.get(where)
    if (granted === undefined) grants.set(where, new Set([permission]))
    else granted.add(permission)
  }
  read.set(token, grants)
  return grants
}
