import { isDeepStrictEqual } from 'node:util'
import type { Span } from '@opentelemetry/api'
import { ApiFailure, Unreachable } from '../clusters/cluster.ts'
import { type HoldWish, holdKey, openHolds } from '../domain/placements/holds.ts'
import { LeaseLost } from '../domain/placements/ownership.ts'
import { askPlacement } from '../domain/placements/report.ts'
import { readWanted, type TakenPlacement } from '../domain/placements/wanted.ts'
import { type Desired, desired } from '../rules/desired.ts'
import { judge, judgeAgainIn } from '../rules/evidence.ts'
import { found } from '../rules/findings.ts'
import { newestGeneration, type Observed } from '../rules/observed.ts'
import { REASONS } from '../rules/reasons.ts'
import type { PlacementReport } from '../rules/report.ts'
import { type Step, steps } from '../rules/steps.ts'
import type { Capabilities, Wanted } from '../rules/wanted.ts'
import { beginWork, endSpan, inSpan } from '../telemetry/traces.ts'
import { Confirmation } from './confirmation.ts'
import { Slots } from './probe/slots.ts'
import { Repairs } from './repairs.ts'
import type { Surroundings } from './surroundings.ts'
import { Together } from './together.ts'
import { lackOf, troubleOfWrite } from './trouble.ts'

/** How many load balancers of a cluster are written at a time. */
const WRITING = 16
/**
 * While so many are written, what is wanted of the next ones is read for several at once: when so many wait
 * for it, or so long (ms) after it was read last.
 */
const READING = { together: 12, apart: 150 }

/** How many writes it took, and up to which number what was asked is done. */
type Work = { wrote: number; done: number }

/** What a look found: `failure` ended its writes, `gone` are the VIPs of which nothing is left. */
type Seen = {
  report: PlacementReport
  failure: ApiFailure | Unreachable | undefined
  gone: string[]
  writes: number
}

/** The cluster's schema became another while it was written to: all is computed anew. */
class SchemaChanged {}

/**
 * Brings one load balancer in one cluster closer to what is wanted now, and reports what is there.
 * Level-triggered: whatever was the cause, it looks at everything, and does nothing where all is well.
 */
export class Reconciler {
  readonly #with: Surroundings
  /** What was reported last, so that equal news isn't written again. */
  readonly #reported = new Map<string, PlacementReport>()
  readonly #writing = new Slots(WRITING)
  readonly #repairs = new Repairs(() => performance.now())
  readonly #confirmation: Confirmation
  readonly #reads: Together<string, TakenPlacement | null>
  /** Each answered with all that were granted together. */
  readonly #holds: Together<HoldWish[], ReadonlySet<string>>

  constructor(surroundings: Surroundings) {
    const { store, owner } = surroundings
    this.#with = surroundings
    this.#confirmation = new Confirmation(surroundings)
    this.#reads = new Together(
      async (ids) => {
        const taken = await readWanted(store, owner.cluster, ids)
        return ids.map((id) => taken.get(id) ?? null)
      },
      {
        apart: READING.apart,
        expected: () => (this.#writing.areTaken ? READING.together : 0),
      },
    )
    this.#holds = new Together(async (wishes) => {
      const granted = await openHolds(store, owner, wishes.flat())
      return wishes.map(() => granted)
    })
  }

  /**
   * Never rejects. Answers up to which number it has done what was asked; 0: nothing is known to be done.
   * `written` is called when nothing is left but to report.
   */
  async reconcile(loadBalancer: string, written: () => void): Promise<number> {
    const { log, name, observer } = this.#with
    const begun = performance.now()
    const seconds = () => (performance.now() - begun) / 1000
    let asked = 0
    try {
      const taken = await this.#reads.do(loadBalancer)
      if (taken === null) {
        this.#forget(loadBalancer)
        return 0
      }
      asked = taken.wanted.asked
      const { wrote, done } = await this.#traced(taken, written)
      this.#with.failures.forget(loadBalancer)
      this.#with.refused(loadBalancer, undefined)
      observer.reconciled(name, wrote > 0 ? 'written' : 'unchanged', seconds())
      return done
    } catch (error) {
      observer.reconciled(name, 'failed', seconds())
      if (error instanceof LeaseLost) {
        this.#with.leaseLost()
        return 0
      }
      if (error instanceof Unreachable) this.#with.unanswered(error)
      if (error instanceof ApiFailure) this.#with.refused(loadBalancer, troubleOfWrite(error))
      log.warn({ err: error, loadBalancer }, 'a placement could not be brought closer')
      await this.#with.failures.postpone(loadBalancer, asked, error)
      return 0
    }
  }

  #forget(loadBalancer: string): void {
    this.#with.places.release(loadBalancer)
    this.#with.view.forget(loadBalancer)
    this.#reported.delete(loadBalancer)
    this.#with.failures.forget(loadBalancer)
    this.#repairs.forget(loadBalancer)
    this.#with.refused(loadBalancer, undefined)
  }

  /** Does it as part of the trace of whoever asked. */
  async #traced(taken: TakenPlacement, written: () => void): Promise<Work> {
    const { wanted, trace } = taken
    const span = beginWork('apply load balancer', trace, {
      'nlb.object.id': wanted.loadBalancer,
      'nlb.cluster.name': this.#with.name,
      'nlb.generation': wanted.generation,
    })
    try {
      const work = await this.#bringCloser(taken, span, written)
      endSpan(span)
      return work
    } catch (error) {
      endSpan(span, error instanceof Error ? error.name : 'Error')
      throw error
    }
  }

  async #bringCloser(taken: TakenPlacement, span: Span, written: () => void): Promise<Work> {
    const known = this.#with.capabilities()
    const { wanted, wish } = await this.#withHolds(taken, known)
    const seen = await this.#inPlace(() => this.#write(taken, wanted, wish, known, span))
    if (seen === undefined) return { wrote: 0, done: 0 }
    const { report, failure, gone, writes } = seen
    written()
    // One that waits stays due.
    const applied = failure === undefined && !(wanted.awaitsSuccessor && !wanted.placed)
    const news = gone.length > 0 || (applied && taken.applied < wanted.asked)
    await this.#tell(wanted, report, applied, gone, news)
    if (failure !== undefined) throw failure
    if (writes > 0) {
      const { loadBalancer, generation } = wanted
      this.#with.log.info({ loadBalancer, generation, writes }, 'rules were written')
    }
    return { wrote: writes, done: applied ? wanted.asked : 0 }
  }

  /** So many are written at a time; the next ones are read meanwhile. */
  async #inPlace<T>(work: () => Promise<T>): Promise<T> {
    // Once the lease is over no write goes through, with a place or without.
    const given = await this.#writing.take(this.#with.signal)
    try {
      return await work()
    } finally {
      if (given) this.#writing.give()
    }
  }

  /** Writes what isn't as it should be, and judges what is there then; undefined: all is computed anew. */
  async #write(
    taken: TakenPlacement,
    wanted: Wanted,
    wish: Desired,
    known: Capabilities,
    span: Span,
  ): Promise<Seen | undefined> {
    const { store, owner, now, places, teardownPatience: patience } = this.#with
    const look = () => this.#observe(wanted.loadBalancer, wish, taken)
    const before = look()
    // The store is behind as long as anything of a generation is there; then its own counts again.
    if (newestGeneration(before) === 0) wish.rulesGeneration = wanted.rulesGeneration
    const lacking = steps(wish, before)
    const { now: wrong } = lacking
    const settled = this.#reported.get(wanted.loadBalancer)?.inEffect ?? false
    const unasked = wrong.length > 0 && taken.applied >= wanted.asked
    const pause = unasked ? this.#repairs.rest(wanted.loadBalancer, settled) : 0
    const todo = pause > 0 ? [] : wrong
    if (todo.length > 0 && settled && unasked) {
      // Nobody asked: something in the cluster was changed by others. It counts as asked, so that
      // status says that it is on its way.
      await askPlacement(store, owner.cluster, wanted.loadBalancer)
      wanted.asked += 1
    }
    // Where nothing is written nothing is waited for: what `before` shows is what is seen.
    const ended = todo.length === 0 ? undefined : await this.#perform(todo, known, span)
    // What came of a write without an answer isn't known: its claims stay until it is looked at again.
    if (!(ended instanceof Unreachable)) places.release(wanted.loadBalancer)
    if (ended instanceof SchemaChanged) {
      this.#with.lookAgain(wanted.loadBalancer, 0)
      return undefined
    }
    const observed = todo.length === 0 ? before : look()
    const left = todo.length === 0 ? lacking : steps(wish, observed)
    if (ended === undefined && (left === lacking || left.now.length === 0))
      this.#with.caughtUp(wanted.loadBalancer)
    const at = now().toISOString()
    const report = judge(wanted, wish, observed, at, patience, left)
    const rest = pause > 0 ? pause : judgeAgainIn(observed, at, patience)
    if (rest !== undefined) this.#with.lookAgain(wanted.loadBalancer, rest)
    const confirmed = await this.#confirmation.ofGone(taken, wish, observed)
    const failure = ended ?? confirmed.failure
    if (failure instanceof ApiFailure) {
      const reason = lackOf(failure) ?? 'ApplyFailed'
      report.cluster = found('FALSE', reason, REASONS[reason])
      report.inEffect = false
    }
    return { report, failure, gone: confirmed.gone, writes: todo.length }
  }

  /** What is desired, once holds are open on every VIP that shall get a rule here. */
  async #withHolds(
    taken: TakenPlacement,
    capabilities: Capabilities,
  ): Promise<{ wanted: Wanted; wish: Desired }> {
    const { places } = this.#with
    const { loadBalancer } = taken.wanted
    const wanted = places.claim(taken.wanted, capabilities)
    const wish = desired(wanted, capabilities)
    const held = new Set(taken.holds.map(({ vip }) => vip))
    const missing = Object.entries(wish.vips)
      .filter(([vip, { wanted: served }]) => served && !held.has(vip))
      .map(([vip, { rule }]) => ({ loadBalancer, vip, rule }))
    if (missing.length === 0) return { wanted, wish }
    const granted = await this.#holds.do(missing)
    taken.holds.push(...missing.filter((one) => granted.has(holdKey(one))))
    const refused = new Set(missing.flatMap((one) => (granted.has(holdKey(one)) ? [] : one.vip)))
    if (refused.size === 0) return { wanted, wish }
    // Another load balancer may still be carried with it: it closes its hold, and then asks us.
    const vips = wanted.vips.map((vip) =>
      refused.has(vip.address) ? { ...vip, heldBy: vip.heldBy ?? 'another' } : vip,
    )
    const waiting = { ...wanted, vips }
    return { wanted: waiting, wish: desired(waiting, capabilities) }
  }

  #observe(loadBalancer: string, wish: Desired, { holds }: TakenPlacement): Observed {
    const vips = [...Object.keys(wish.vips), ...holds.map(({ vip }) => vip)]
    const rules = [
      ...Object.values(wish.vips).map(({ rule }) => rule),
      ...holds.map(({ rule }) => rule),
    ]
    const where = { rules, vips: [...new Set(vips)], awaited: wish.awaited }
    return this.#with.view.observed(loadBalancer, where)
  }

  /** Answers the failure that ended it, if one did. */
  async #perform(
    todo: Step[],
    known: Capabilities,
    span: Span,
  ): Promise<ApiFailure | Unreachable | SchemaChanged | undefined> {
    try {
      for (const step of todo) {
        const attributes = { 'nlb.kind': step.resource.plural }
        await inSpan(span, `${step.act} ${step.resource.plural}`, attributes, () => this.#do(step))
      }
      return undefined
    } catch (error) {
      if (error instanceof Unreachable) this.#confirmation.noteUnsure(todo)
      if (!(error instanceof ApiFailure || error instanceof Unreachable)) throw error
      if (!(error instanceof ApiFailure && error.schemaMismatch)) return error
      await this.#with.schemaChanged()
      return isDeepStrictEqual(this.#with.capabilities(), known) ? error : new SchemaChanged()
    }
  }

  async #do(step: Step): Promise<void> {
    const { cluster, view, signal } = this.#with
    if (step.act === 'remove') {
      await cluster.remove(step.resource, step.where, { signal })
      return
    }
    const object =
      step.act === 'apply'
        ? await cluster.apply(step.resource, step.object, { signal })
        : await cluster.merge(step.resource, step.where, step.patch, { signal })
    if (object !== undefined) view.learn(object)
  }

  async #tell(
    wanted: Wanted,
    report: PlacementReport,
    applied: boolean,
    gone: string[],
    news: boolean,
  ): Promise<void> {
    const { owner, reports } = this.#with
    const { loadBalancer } = wanted
    const last = this.#reported.get(loadBalancer)
    if (!news && isDeepStrictEqual(last, report)) return
    const outcome = await reports.do({ owner, loadBalancer, report, applied, gone })
    if (outcome === 'lease-lost') throw new LeaseLost(`cluster ${owner.cluster} has another owner`)
    if (outcome === 'over') this.#forget(loadBalancer)
    else this.#reported.set(loadBalancer, report)
  }
}
