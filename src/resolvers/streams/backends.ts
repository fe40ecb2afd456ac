import type { LoadBalancerRecord } from '../../domain/records.ts'
import { isServing } from '../../schema/backend.ts'
import type { Context } from '../../schema/context.ts'
import type { BackendShape } from '../../schema/shapes.ts'
import type { BackendHealthEvent, WatchEvent, WatchEventType } from '../../schema/watchEvents.ts'
import { endable } from './iterate.ts'
import { oneLoadBalancer } from './objects.ts'
import { watch } from './watch.ts'

/** The backends of one load balancer: each that comes, goes, or fares otherwise than before. */
export function watchBackends(
  context: Context,
  uuid: string,
  after: string | null,
): AsyncGenerator<BackendHealthEvent> {
  const changes = watch(context, oneLoadBalancer(context, uuid), after)
  return endable(async function* (signal) {
    signal.addEventListener('abort', () => void changes.return(undefined), { once: true })
    let before: LoadBalancerRecord | null = null
    let cursor = after ?? ''
    // Which backends went since the client was here isn't known: by the first change it begins anew.
    let behind = after !== null
    let synced = false
    for await (const event of changes) {
      const told = compare(event, before)
      if (behind && event.object !== null && event.type !== 'DELETED') {
        told.unshift(ofNone(event, 'RESYNC'))
        if (synced) told.push(ofNone(event, 'SYNCED'))
        behind = false
      }
      if (event.type === 'RESYNC') behind = false
      if (event.type === 'SYNCED') synced = true
      // Only the last may tell the new position: whoever comes back earlier is sent the others again.
      for (const [index, one] of told.entries()) {
        yield { ...one, cursor: index < told.length - 1 && cursor !== '' ? cursor : event.cursor }
      }
      cursor = event.cursor
      if (event.object !== null) before = event.object
      if (event.type === 'RESYNC') before = null
    }
  })
}

function compare(
  event: WatchEvent<LoadBalancerRecord>,
  before: LoadBalancerRecord | null,
): BackendHealthEvent[] {
  const now = event.object
  if (event.type === 'DELETED') {
    return shapesOf(now ?? before).map((shape) => told(event, 'DELETED', shape))
  }
  if (now === null) return [ofNone(event, event.type)]
  const earlier = new Map(shapesOf(before).map((shape) => [shape.backend.id, shape]))
  const events = shapesOf(now).flatMap((shape) => {
    const last = earlier.get(shape.backend.id)
    earlier.delete(shape.backend.id)
    if (last !== undefined)
      return fares(last) === fares(shape) ? [] : [told(event, 'MODIFIED', shape)]
    return [told(event, 'ADDED', shape)]
  })
  const gone = [...earlier.values()].map((shape) => ({
    ...told(event, 'DELETED', shape),
    loadBalancer: now,
  }))
  return [...events, ...gone]
}

function ofNone(event: WatchEvent<LoadBalancerRecord>, type: WatchEventType): BackendHealthEvent {
  return { ...event, type, id: null, object: null, loadBalancer: null }
}

function told(
  event: WatchEvent<LoadBalancerRecord>,
  type: WatchEventType,
  shape: BackendShape,
): BackendHealthEvent {
  return { ...event, type, id: shape.backend.id, object: shape, loadBalancer: shape.loadBalancer }
}

function shapesOf(loadBalancer: LoadBalancerRecord | null): BackendShape[] {
  if (loadBalancer === null) return []
  return loadBalancer.backends.map((backend) => ({ backend, loadBalancer }))
}

/** What of a backend counts as a change: all but how often it was probed. */
function fares(shape: BackendShape): string {
  const { backend, loadBalancer } = shape
  const { state, reason, message, since } = backend.health
  const resolved = loadBalancer.status.backends[backend.id]?.resolved
  return JSON.stringify([
    [backend.name, backend.adminState, isServing(shape)],
    [state, reason, message, since],
    [resolved?.status, resolved?.reason, resolved?.message],
  ])
}
