/**
 * The floor of probing: so many connections in every interval, evenly, each given up after a timeout.
 * `rawConnects.ts <count> <seconds> <tick> <port> …`; those due within `tick` ms begin together.
 */
import { createConnection } from 'node:net'

const [count = '0', seconds = '5', tick = '1', ...ports] = process.argv.slice(2)
/** As seeded load balancers have it (ms). */
const TIMEOUT = 5_000
const perMillisecond = Number(count) / (Number(seconds) * 1_000)
const begun = performance.now()
let turn = 0
setInterval(() => {
  const due = (performance.now() - begun) * perMillisecond
  while (turn < due) {
    turn += 1
    const socket = createConnection({ host: '127.0.0.1', port: Number(ports[turn % ports.length]) })
    const timer = setTimeout(() => socket.destroy(new Error('no answer')), TIMEOUT)
    socket.once('connect', () => {
      clearTimeout(timer)
      socket.destroy()
    })
    socket.on('error', (error) => {
      clearTimeout(timer)
      console.error(error.message)
    })
  }
}, Number(tick))
console.log('connecting')
process.on('SIGTERM', () => process.exit(0))
