import type { IncomingMessage } from 'node:http'
import { badUserInput, overLimit } from '../schema/failures.ts'

/** A request is at most 1 MiB. */
const LARGEST = 1_048_576

/** The JSON object of a POST. Anything else is refused by throwing: what browsers' forms can send, too. */
export async function readBody(request: IncomingMessage): Promise<Record<string, unknown>> {
  const type = request.headers['content-type'] ?? ''
  if (!/^application\/json *(?:;|$)/i.test(type)) {
    throw badUserInput('Send the query as application/json.', 415)
  }
  if (Number(request.headers['content-length'] ?? 0) > LARGEST) throw tooLarge()
  const text = await readText(request)
  let body: unknown
  try {
    body = JSON.parse(text)
  } catch {
    throw badUserInput('The body is not JSON.', 400)
  }
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    throw badUserInput('The body is a JSON object with a query; only one at a time.', 400)
  }
  return { ...body }
}

const tooLarge = () => overLimit('The body is larger than 1 MiB.', 'body', 413)

function readText(request: IncomingMessage): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let size = 0
    request.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size > LARGEST) {
        request.pause()
        reject(tooLarge())
        return
      }
      chunks.push(chunk)
    })
    request.on('end', () => resolve(Buffer.concat(chunks).toString('utf8')))
    request.on('error', reject)
    request.on('close', () => {
      if (!request.complete) reject(badUserInput('The connection broke.', 400))
    })
  })
}
