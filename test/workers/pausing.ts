/**
 * Loaded into a worker's process before all else: once a file names a kind of object, the next write of that
 * kind stops the process, between its answer and whatever comes next. No timer runs in between.
 */
import { subscribe } from 'node:diagnostics_channel'
import { readFileSync, rmSync } from 'node:fs'

const { PAUSE_FILE = '' } = process.env

function wanted(): string | undefined {
  try {
    return readFileSync(PAUSE_FILE, 'utf8')
  } catch {
    return undefined
  }
}

subscribe('undici:request:trailers', (message) => {
  const { method, path }: { method: string; path: string } = Object(Object(message).request)
  const kind = method === 'GET' ? undefined : wanted()
  if (kind === undefined || !path.includes(`/${kind}/`)) return
  rmSync(PAUSE_FILE)
  process.kill(process.pid, 'SIGSTOP')
})
