import type { KubeObject } from '../rules/objects.ts'
import { type ApiFailure, Unreachable } from './cluster.ts'
import { failureOfStatus, isRecord, parseJson } from './failure.ts'
import { objectFrom } from './wire.ts'

export type WatchEvent<T> =
  | { type: 'ADDED' | 'MODIFIED' | 'DELETED'; object: T }
  | { type: 'BOOKMARK'; resourceVersion: string }
  | { type: 'ERROR'; failure: ApiFailure }

/** An object may be 3 MB as JSON; a line beyond this is no event and isn't collected. */
const LINE_LIMIT = 16 * 1024 * 1024

/**
 * The events of a watch's answer, one JSON document a line however the bytes were cut. Ends with
 * the answer, also in the middle of a line: what was cut off comes again when the watch resumes.
 */
export async function* eventsOf<T extends KubeObject>(
  chunks: AsyncIterable<Uint8Array>,
): AsyncGenerator<WatchEvent<T>> {
  const decoder = new TextDecoder()
  let pieces: string[] = []
  let collected = 0
  for await (const chunk of chunks) {
    let text = decoder.decode(chunk, { stream: true })
    for (let end = text.indexOf('\n'); end !== -1; end = text.indexOf('\n')) {
      pieces.push(text.slice(0, end))
      const line = pieces.join('')
      pieces = []
      collected = 0
      text = text.slice(end + 1)
      if (line.trim() !== '') yield eventFrom<T>(line)
    }
    pieces.push(text)
    collected += text.length
    if (collected > LINE_LIMIT) throw new Unreachable('a line of the watch has no end')
  }
}

function eventFrom<T extends KubeObject>(line: string): WatchEvent<T> {
  const value = parseJson(line)
  if (isRecord(value)) {
    const { type, object } = value
    if (type === 'ERROR') {
      return {
        type,
        failure: failureOfStatus(object, { code: 500, message: 'the watch reported an error' }),
      }
    }
    if (type === 'BOOKMARK' && isRecord(object) && isRecord(object['metadata'])) {
      const { resourceVersion } = object['metadata']
      if (typeof resourceVersion === 'string') return { type, resourceVersion }
    }
    if (type === 'ADDED' || type === 'MODIFIED' || type === 'DELETED') {
      const whole = objectFrom<T>(object)
      if (whole !== undefined) return { type, object: whole }
    }
  }
  throw new Unreachable('a line of the watch is no event')
}
