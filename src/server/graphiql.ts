import { createHash } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { readExamples } from './examples.ts'

const DEFAULT_QUERY = `# Ctrl-Enter runs what the cursor is in. Ctrl-Space completes; the book on the left documents.
# Where a token is needed: open Headers, below, and put yours into the line that is there.
# The other tabs hold what is done most: fill in the variables of each, below, and run it.

query LoadBalancers {
  loadBalancers(first: 20) {
    nodes {
      id
      name
      region { code }
      protocolName
      ports { from to }
      addresses { address family }
      status { phase ready { status reason message } }
    }
  }
}

subscription Watch {
  loadBalancers {
    type
    loadBalancer { id name status { phase observedGeneration } }
  }
}
`

/** What is sent besides, as the editor of headers takes it; a comment until somebody has a token. */
const HEADERS = `{
  // "authorization": "Bearer <your token>"
}`

/** What the page may load: nothing from any other host. Its editor runs in workers made of its own text. */
const POLICY = [
  "default-src 'none'",
  "script-src 'unsafe-inline' 'unsafe-eval' blob:",
  "style-src 'unsafe-inline'",
  "connect-src 'self'",
  'worker-src blob:',
  'img-src data:',
  'font-src data:',
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

type Page = { body: Buffer; etag: string }

/** GraphiQL for browsers: one page that holds all it needs, so it works without the internet. */
export class GraphiQL {
  #page: Promise<Page> | undefined

  /** Whether a person's browser asks, rather than a client. */
  static isWanted(request: IncomingMessage): boolean {
    return request.method === 'GET' && request.headers.accept?.includes('text/html') === true
  }

  async send(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.#page ??= render()
    const { body, etag } = await this.#page
    response.setHeader('etag', etag)
    response.setHeader('cache-control', 'no-cache')
    response.setHeader('content-security-policy', POLICY)
    response.setHeader('referrer-policy', 'no-referrer')
    response.setHeader('cross-origin-opener-policy', 'same-origin')
    response.setHeader('cross-origin-resource-policy', 'same-origin')
    response.setHeader('x-frame-options', 'DENY')
    if (request.headers['if-none-match'] === etag) {
      response.writeHead(304).end()
      return
    }
    response.writeHead(200, {
      'content-type': 'text/html; charset=utf-8',
      // Every browser of the last twenty years takes it; 9 MB become 2.
      'content-encoding': 'gzip',
      'content-length': body.length,
    })
    response.end(body)
  }
}

/** Made when it is first asked for: it takes 9 MB of memory, and a second of work once. */
async function render(): Promise<Page> {
  const { renderGraphiQL } = await import('@graphql-yoga/render-graphiql')
  const html = await renderGraphiQL({
    title: 'Load balancers',
    defaultTabs: [{ query: DEFAULT_QUERY }, ...(await readExamples())].map((tab) => ({
      ...tab,
      headers: HEADERS,
    })),
    defaultHeaders: HEADERS,
    subscriptionsProtocol: 'SSE',
  })
  const body = await promisify(gzip)(html)
  return { body, etag: `"${createHash('sha256').update(body).digest('base64url')}"` }
}
