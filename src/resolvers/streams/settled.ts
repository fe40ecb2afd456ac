import { listEvents } from '../../domain/events/read.ts'
import type { LoadBalancerRecord } from '../../domain/records.ts'
import type { Context } from '../../schema/context.ts'
import { badUserInput } from '../../schema/failures.ts'
import { conditionOf } from '../../schema/loadBalancerStatus.ts'
import type { Outcome, SettledEvent, WatchEvent } from '../../schema/watchEvents.ts'
import { endable, within } from './iterate.ts'
import { oneLoadBalancer } from './objects.ts'
import { watch } from './watch.ts'

/** undefined: none came in time. */
type Next = IteratorResult<WatchEvent<LoadBalancerRecord>, undefined> | undefined
type Waited = { uuid: string; generation: number | null; timeoutSeconds: number }

/** Waits until a generation is in effect, telling what is missing; ends with how that came out. */
export function watchSettling(context: Context, waited: Waited): AsyncGenerator<SettledEvent> {
  const { clock } = context
  const changes = watch(context, oneLoadBalancer(context, waited.uuid), null)
  return endable(async function* (signal) {
    signal.addEventListener('abort', () => void changes.return(undefined), { once: true })
    const deadline = clock.now().getTime() + waited.timeoutSeconds * 1000
    let generation = waited.generation
    let record: LoadBalancerRecord | null = null
    let seen = false
    let missing: string | undefined
    const told = (outcome: Outcome): SettledEvent => ({
      outcome,
      generation: generation ?? 0,
      unmet: record === null ? [] : unmetOf(record),
      loadBalancer: record,
    })
    try {
      while (true) {
        const left = deadline - clock.now().getTime()
        // How it stands is told in any case, however short the time is.
        const next: Next = seen ? await within(changes.next(), left, clock) : await changes.next()
        if (signal.aborted) return
        if (next === undefined) return yield told('TIMED_OUT')
        // The watch ends by itself only where there is nothing (any more).
        if (next.done === true) {
          if (!seen) await requireDeleted(context, waited.uuid)
          return yield told('DELETED')
        }
        const { type, object } = next.value
        record = object ?? record
        if (type === 'DELETED') return yield told('DELETED')
        if (object === null) continue
        seen = true
        generation ??= object.generation
        if (missing === undefined && (generation < 1 || generation > object.generation)) {
          throw badUserInput(
            `It is at generation ${object.generation}; ${generation} was never asked for.`,
          )
        }
        const outcome = outcomeOf(object, generation)
        if (outcome !== 'WAITING') return yield told(outcome)
        const event = told('WAITING')
        const key = JSON.stringify(event.unmet)
        if (key !== missing) yield event
        missing = key
      }
    } finally {
      void changes.return(undefined)
    }
  })
}

/** One that isn't there was deleted, as far as the log goes back, or it never was. */
async function requireDeleted({ store, project }: Context, uuid: string): Promise<void> {
  const filter = { objectId: uuid, reason: ['LoadBalancerDeleted'] }
  const ends = await listEvents(store, { project, filter, page: { first: 1 } })
  if (ends.items.length === 0) {
    throw badUserInput('There is no load balancer of that id, and none was deleted lately.')
  }
}

function outcomeOf(record: LoadBalancerRecord, generation: number): Outcome {
  if (record.deletingSince !== null) {
    return record.generation > generation ? 'SUPERSEDED' : 'WAITING'
  }
  if (record.status.observedGeneration >= generation) return 'SETTLED'
  return record.generation > generation ? 'SUPERSEDED' : 'WAITING'
}

function unmetOf(record: LoadBalancerRecord) {
  return ['Ready', 'Provisioned']
    .map((type) => conditionOf(record, type))
    .filter(({ status }) => status !== 'TRUE')
}
