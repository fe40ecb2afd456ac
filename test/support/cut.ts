import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'

/** A way to the server that loses its first answer to what names an operation. */
export async function cutFirstAnswer(endpoint: string, operation: string) {
  const target = new URL(endpoint)
  let answers = 0
  const proxy = createServer(async (asked, answer) => {
    const body = Buffer.concat(await Array.fromAsync(asked))
    const { method, headers } = asked
    const passed = request(target, { method, headers }, async (received) => {
      const content = Buffer.concat(await Array.fromAsync(received))
      if (body.includes(operation) && ++answers === 1) return void asked.socket.destroy()
      answer.writeHead(received.statusCode ?? 500, { 'content-type': 'application/json' })
      answer.end(content)
    })
    passed.end(body)
  })
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void proxy.close())
  const { port } = proxy.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}${target.pathname}`, answers: () => answers }
}
