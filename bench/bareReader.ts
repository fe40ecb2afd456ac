/** The floor of reading: one prepared statement that answers JSON, behind a bare HTTP handler. */
import { createServer } from 'node:http'
import { openStore } from '../src/db/client.ts'

const { pool } = openStore({ connectionString: process.argv[2] ?? '', maxConnections: 20 })
const STATEMENTS: Record<string, { name: string; text: string }> = {
  one: {
    name: 'bare-one',
    text: 'SELECT record::text AS answer FROM load_balancers_json(ARRAY[$1::uuid], NULL, false)',
  },
  list: {
    name: 'bare-list',
    text: `SELECT json_agg(record ORDER BY id)::text AS answer FROM load_balancers_json(ARRAY(
      SELECT id FROM load_balancer WHERE project = $1 ORDER BY created_at, id LIMIT 50), NULL, false)`,
  },
}
const server = createServer((request, response) => {
  const [, what = '', which] = (request.url ?? '').split('/')
  const statement = STATEMENTS[what]
  if (statement === undefined) {
    response.writeHead(404).end()
    return
  }
  pool.query<{ answer: string }>({ ...statement, values: [which] }).then(
    ({ rows }) => {
      response.setHeader('content-type', 'application/json')
      response.end(rows[0]?.answer ?? 'null')
    },
    (error: unknown) => response.writeHead(500).end(String(error)),
  )
})
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  console.log(`http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`)
})
process.on('SIGTERM', () => process.exit(0))
