import type { LoadBalancerRecord } from '../../domain/records.ts'
import type { Context } from '../../schema/context.ts'
import { badUserInput } from '../../schema/failures.ts'
import { conditionOf } from '../../schema/loadBalancerStatus.ts'
import type { Outcome, SettledEvent } from '../../schema/watchEvents.ts'
import { endable, within } from './iterate.ts'
import { oneLoadBalancer } from './objects.ts'
import { watch } from './watch.ts'

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
        const next = seen ? await within(changes.next(), left, clock) : await changes.next()
        if (signal.aborted) return
        if (next === undefined) return yield told('TIMED_OUT')
        // The watch ends by itself only where there is nothing (any more).
        if (next.done === true) return yield told('DELETED')
        const { type, object } = next.value
        seen = true
        record = object ?? record
        if (type === 'DELETED') return yield told('DELETED')
        if (object === null) continue
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
