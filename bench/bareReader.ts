/** The floor of reading: one prepared statement that answers JSON, behind a bare HTTP handler. */
import { createServer } from 'node:http'
import pg from 'pg'

const pool = new pg.Pool({ connectionString: process.argv[2], max: 16 })
const server = createServer((request, response) => {
  pool
    .query({
      name: 'bare-read',
      text: 'SELECT record::text AS record FROM load_balancers_json(ARRAY[$1::uuid], NULL, false)',
      values: [request.url?.slice(1)],
    })
    .then(
      ({ rows }) => {
        response.setHeader('content-type', 'application/json')
        response.end(rows[0]?.record ?? 'null')
      },
      (error: unknown) => response.writeHead(500).end(String(error)),
    )
})
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  console.log(`http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`)
})
process.on('SIGTERM', () => process.exit(0))
