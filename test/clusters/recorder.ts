import { ApiFailure, type FollowHandler } from '../../src/clusters/cluster.ts'
import type { KubeObject } from '../../src/rules/objects.ts'

/** A follow's handler that keeps what it was told, one line each, and lets a test wait for it. */
export class Recorder implements FollowHandler<KubeObject> {
  readonly lines: string[] = []
  accept: (known: number, vanished: number) => boolean = () => true
  readonly #waiting = new Set<{ done: (lines: string[]) => boolean; resolve: () => void }>()

  changed(object: KubeObject | undefined, previous: KubeObject | undefined): void {
    const { name = '', resourceVersion } = (object ?? previous)?.metadata ?? {}
    if (object === undefined) this.#note(`-${name}`)
    else this.#note(`${previous === undefined ? '+' : '~'}${name}@${resourceVersion}`)
  }

  listed(objects: number, vanished: number): void {
    this.#note(`listed ${objects}/${vanished}`)
  }

  acceptRelist(known: number, vanished: number): boolean {
    this.#note(`accept ${known}/${vanished}?`)
    return this.accept(known, vanished)
  }

  failing(error: Error | undefined): void {
    if (error === undefined) this.#note('works')
    else this.#note(`failing ${error instanceof ApiFailure ? error.code : error.name}`)
  }

  /** Resolves when this line has come `times` times. */
  said(line: string, times = 1): Promise<void> {
    return this.until((lines) => lines.filter((one) => one === line).length >= times)
  }

  until(done: (lines: string[]) => boolean): Promise<void> {
    if (done(this.lines)) return Promise.resolve()
    return new Promise((resolve) => this.#waiting.add({ done, resolve }))
  }

  #note(line: string): void {
    this.lines.push(line)
    for (const waiting of this.#waiting) {
      if (!waiting.done(this.lines)) continue
      this.#waiting.delete(waiting)
      waiting.resolve()
    }
  }
}
