import { readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/** What a program hands out; `expires`: until when (ms) it says that it is good. */
export type Handed = { token?: string; cert?: string; key?: string; expires?: number }

/** A program that hands out credentials, as `exec` in a kubeconfig names one. */
export class Plugin {
  readonly #program: string

  private constructor(program: string) {
    this.#program = program
  }

  static async create(folder: string, first: Handed): Promise<Plugin> {
    const program = join(folder, 'program')
    const script = `#!/bin/sh\necho run >> '${program}.runs'\ncat '${program}.credential'\n`
    await writeFile(program, script, { mode: 0o755 })
    const plugin = new Plugin(program)
    await plugin.hand(first)
    return plugin
  }

  /** The user of a kubeconfig. */
  get user(): { exec: object } {
    return { exec: { apiVersion: 'client.authentication.k8s.io/v1', command: this.#program } }
  }

  /** What it hands out from now on. */
  async hand({ token, cert, key, expires }: Handed): Promise<void> {
    const status = {
      token,
      clientCertificateData: cert,
      clientKeyData: key,
      expirationTimestamp: expires === undefined ? undefined : new Date(expires).toISOString(),
    }
    const text = JSON.stringify({ kind: 'ExecCredential', status })
    await writeFile(`${this.#program}.next`, text)
    await rename(`${this.#program}.next`, `${this.#program}.credential`)
  }

  /** How often it was run. */
  async runs(): Promise<number> {
    return (await readFile(`${this.#program}.runs`, 'utf8')).trimEnd().split('\n').length
  }
}
