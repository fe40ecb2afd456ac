import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { type CryptoKey, exportJWK, generateKeyPair, type JWK, SignJWT } from 'jose'
import { afterAll } from 'vitest'

export const AUDIENCE = 'load-balancers'

/** Listens on this machine, on a free port, until the file's tests are over. */
export async function listen(
  handler: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<{ url: string; server: Server }> {
  const server = createServer(handler)
  await once(server.listen(0, '127.0.0.1'), 'listening')
  afterAll(() => {
    server.closeAllConnections()
    server.close()
  })
  const address = server.address()
  if (typeof address !== 'object' || address === null) throw new Error('it does not listen')
  return { url: `http://127.0.0.1:${address.port}`, server }
}

/** An identity provider over HTTP, with discovery, whose keys can be changed and which can fail. */
export async function startIssuer() {
  const published: JWK[] = []
  const signing = new Map<string, CryptoKey>()
  const state = { failing: false, fetches: 0 }
  const { url } = await listen((request, response) => {
    if (request.url === '/keys') state.fetches += 1
    const documents: Record<string, unknown> = {
      '/.well-known/openid-configuration': { issuer: url, jwks_uri: `${url}/keys` },
      '/keys': { keys: published },
    }
    const body = documents[request.url ?? '']
    response.writeHead(state.failing ? 503 : 200, { 'content-type': 'application/json' })
    response.end(JSON.stringify(body))
  })
  const addKey = async (kid: string) => {
    const { publicKey, privateKey } = await generateKeyPair('RS256')
    signing.set(kid, privateKey)
    published.push({ ...(await exportJWK(publicKey)), kid, alg: 'RS256', use: 'sig' })
  }
  await addKey('first')
  return {
    url,
    state,
    addKey,
    withdrawKey(kid: string) {
      published.splice(
        published.findIndex((key) => key.kid === kid),
        1,
      )
    },
    publicKey: () => published[0] ?? {},
    /** A good token but for what is given otherwise; times in seconds from `now`. */
    issue(
      claims: Record<string, unknown> = {},
      { kid = 'first', now = Date.now(), expires = 600, after = 0 } = {},
    ): Promise<string> {
      const key = signing.get(kid)
      if (key === undefined) throw new Error(`there is no key ${kid}`)
      const seconds = Math.floor(now / 1_000)
      const payload = {
        iss: url,
        aud: AUDIENCE,
        sub: 'u-1',
        email: 'alice@example.com',
        iat: seconds,
        nbf: seconds + after,
        exp: seconds + expires,
        ...claims,
      }
      return new SignJWT(payload).setProtectedHeader({ alg: 'RS256', kid }).sign(key)
    },
  }
}
export type Issuer = Awaited<ReturnType<typeof startIssuer>>
