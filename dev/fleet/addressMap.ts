import { readFile, stat, writeFile } from 'node:fs/promises'
import { isRecord, parseJson } from '../../src/clusters/failure.ts'

/** How an attempt to reach a backend ended. */
export type ProbeOutcome =
  | { reached: true; milliseconds: number }
  | { reached: false; reason: string; milliseconds: number }

/** Asks backends whether they are there; the worker's real one connects to what it is given. */
export type Prober = {
  connect(
    address: string,
    port: number,
    timeoutMilliseconds: number,
    signal: AbortSignal,
  ): Promise<ProbeOutcome>
}

/** Where on loopback an endpoint's address answers; undefined: it is nobody's. */
export type AddressMap = (address: string) => Promise<number | undefined>

/** Writes which address answers on which port of 127.0.0.1, for the worker's process to read. */
export async function writeAddressMap(
  file: string,
  ports: ReadonlyMap<string, number>,
): Promise<void> {
  await writeFile(file, `${JSON.stringify(Object.fromEntries(ports), null, 2)}\n`)
}

/** Reads what `writeAddressMap` wrote, again whenever the file changed. */
export function fileAddressMap(file: string): AddressMap {
  let stamp = ''
  let ports = new Map<string, number>()
  return async (address) => {
    const { mtimeMs, size } = await stat(file)
    if (`${mtimeMs} ${size}` !== stamp) {
      stamp = `${mtimeMs} ${size}`
      ports = portsFrom(await readFile(file, 'utf8'))
    }
    return ports.get(address)
  }
}

/**
 * A prober for addresses that no host has: whatever port is asked for, the endpoint's listener
 * answers. An address that isn't in the map is refused, as by a node that doesn't know it.
 */
export function mappedProber(prober: Prober, map: AddressMap): Prober {
  return {
    async connect(address, _port, timeoutMilliseconds, signal) {
      const port = await map(address)
      if (port === undefined) return { reached: false, reason: 'ECONNREFUSED', milliseconds: 0 }
      return prober.connect('127.0.0.1', port, timeoutMilliseconds, signal)
    },
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
