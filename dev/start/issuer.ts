import { createLocalJWKSet, exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose'
import {
  ANYWHERE,
  EDITOR,
  type Identify,
  OPERATOR,
  permissionIds,
} from '../../src/server/caller.ts'
import { byClaims } from '../../src/server/identity/authorize.ts'
import { identifyBearer } from '../../src/server/identity/bearer.ts'
import { Tokens } from '../../src/server/identity/tokens.ts'

const ISSUER = 'https://issuer.demo.invalid'
const AUDIENCE = 'load-balancers'

export type Issuer = {
  /** Recognises whom its tokens name. */
  identify: Identify
  /** A token for a person with these permissions, each `<project>:<permission id>`. */
  issue(email: string, permissions: string[], hours?: number): Promise<string>
}

/** What others than the demo's user would send: a tenant of each project, and an operator. */
export async function demoTokens(
  { issue }: Issuer,
  projects: readonly string[],
): Promise<Map<string, string>> {
  const tokens = new Map<string, string>()
  const grants = (where: string, permissions: ReadonlySet<string>) =>
    [...permissions].map((permission) => `${where}:${permission}`)
  for (const project of projects) {
    const granted = grants(project, permissionIds(EDITOR))
    tokens.set(project, await issue(`tenant@${project}.example.com`, granted))
  }
  const operating = grants(ANYWHERE, permissionIds(OPERATOR))
  return tokens.set('operator', await issue('operator@example.com', operating))
}

/** An issuer in this process. Its key is new each time, so its tokens end with the process. */
export async function createIssuer(): Promise<Issuer> {
  const { publicKey, privateKey } = await generateKeyPair('ES256')
  const keys = createLocalJWKSet({ keys: [{ ...(await exportJWK(publicKey)), alg: 'ES256' }] })
  const tokens = new Tokens({ issuer: ISSUER, audience: AUDIENCE, keys })
  return {
    identify: identifyBearer(tokens, byClaims),
    issue(email, permissions, hours = 12) {
      const claims: JWTPayload = { email, permissions }
      return new SignJWT(claims)
        .setProtectedHeader({ alg: 'ES256' })
        .setIssuer(ISSUER)
        .setAudience(AUDIENCE)
        .setSubject(email)
        .setIssuedAt()
        .setExpirationTime(`${hours}h`)
        .sign(privateKey)
    },
  }
}
