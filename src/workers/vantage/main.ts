/** A vantage point outside, as a process of its own: `npm run vantage`. */
import { pino } from 'pino'
import { orExplain, readEnvironment } from '../../config/environment.ts'
import { readVantageEnvironment } from '../../config/vantage.ts'
import { DirectProber } from '../probe/directProber.ts'
import { vantageApi } from './api.ts'
import { startVantage } from './vantage.ts'

async function main(): Promise<void> {
  const { apiUrl, apiToken, name, intervalSeconds } = readVantageEnvironment(process.env)
  const log = pino({ name: 'vantage', level: readEnvironment(process.env).logLevel })
  const prober = new DirectProber()
  const vantage = startVantage({
    api: vantageApi(apiUrl, apiToken),
    name,
    interval: intervalSeconds * 1_000,
    connect: (...probe) => prober.connect(...probe),
    log,
  })
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => void vantage.close())
  }
}

if (import.meta.main) await orExplain(main)
