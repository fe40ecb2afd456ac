import { readFile, stat, writeFile } from 'node:fs/promises'
import { isRecord, parseJson } from '../../src/clusters/failure.ts'
import type { Locate } from '../../src/workers/probe/directProber.ts'

/** Writes which address answers on which port of 127.0.0.1, for the worker's process to read. */
export async function writeAddressMap(
  file: string,
  ports: ReadonlyMap<string, number>,
): Promise<void> {
  await writeFile(file, `${JSON.stringify(Object.fromEntries(ports), null, 2)}\n`)
}

/**
 * Where probes of endpoints go, by what `writeAddressMap` wrote: whatever port is asked for, the
 * endpoint's listener answers. Other addresses are nobody's. The file is read again when it changed.
 */
export function locateByFile(file: string): Locate {
  let stamp = ''
  let ports = new Map<string, number>()
  return async (address) => {
    const { mtimeMs, size } = await stat(file)
    if (`${mtimeMs} ${size}` !== stamp) {
      stamp = `${mtimeMs} ${size}`
      ports = portsFrom(await readFile(file, 'utf8'))
    }
    const port = ports.get(address)
    return port === undefined ? undefined : { host: '127.0.0.1', port }
  }
}

function portsFrom(text: string): Map<string, number> {
  const value = parseJson(text)
  const ports = new Map<string, number>()
  for (const [address, port] of Object.entries(isRecord(value) ? value : {})) {
    if (typeof port === 'number') ports.set(address, port)
  }
  return ports
}
