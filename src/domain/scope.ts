import type { Actor } from './records.ts'

/** On whose behalf a change is made: the project it may touch, and who is recorded in its event. */
export type Scope = {
  project: string
  actor: Actor
  /** A W3C `traceparent`: the placements that the change asks are worked as part of that trace. */
  trace?: string | undefined
}
