/** The floor of fan-out: what is posted to /send is written to all who posted to any other path. */
import { createServer, type ServerResponse } from 'node:http'

const open = new Set<ServerResponse>()
const server = createServer((request, response) => {
  if (request.url !== '/send') {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.flushHeaders()
    open.add(response)
    response.once('close', () => open.delete(response))
    return
  }
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => {
    const bytes = Buffer.concat(chunks)
    // As one chunk of the answer, by its socket: no more than the bytes.
    const head = Buffer.from(`${bytes.length.toString(16)}\r\n`)
    const whole = Buffer.concat([head, bytes, Buffer.from('\r\n')])
    for (const { socket } of open) socket?.write(whole)
    response.end()
  })
})
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  console.log(`http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`)
})
process.on('SIGTERM', () => process.exit(0))
