/** The floor of probing: so many connections in every interval, evenly. `rawConnects.ts <count> <seconds> <port> …` */
import { createConnection } from 'node:net'

const [count = '0', seconds = '5', ...ports] = process.argv.slice(2)
const perMillisecond = Number(count) / (Number(seconds) * 1_000)
const begun = performance.now()
let turn = 0
setInterval(() => {
  const due = (performance.now() - begun) * perMillisecond
  while (turn < due) {
    turn += 1
    const socket = createConnection({ host: '127.0.0.1', port: Number(ports[turn % ports.length]) })
    socket.once('connect', () => socket.destroy())
    socket.on('error', (error) => console.error(error.message))
  }
}, 1)
console.log('connecting')
process.on('SIGTERM', () => process.exit(0))
