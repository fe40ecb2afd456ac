/** What one client may ask for, so that all of them are served. */
export type Limits = {
  /** Of one document. */
  tokens: number
  depth: number
  aliases: number
  /** How often one selection may name the same field: comparing them all takes the square of it. */
  repeats: number
  /** Of one operation, in objects that it may touch (cost.ts). */
  cost: number
  /** What a project may spend: in one go, and in the long run. Each process counts for itself. */
  budget: { most: number; perSecond: number }
  /** Open at the same time. */
  socketsPerCaller: number
  streamsPerCaller: number
  /** Sockets that haven't said yet who they are, by the client's address. */
  waitingPerAddress: number
}

/**
 * Introspection goes 14 deep with some 600 tokens; a page of 100 load balancers with all there is to
 * know of them and their backends costs about 40,000, and takes a process about half a second.
 */
export const LIMITS: Limits = {
  tokens: 4_000,
  depth: 20,
  aliases: 100,
  repeats: 20,
  cost: 50_000,
  budget: { most: 200_000, perSecond: 10_000 },
  socketsPerCaller: 100,
  streamsPerCaller: 500,
  waitingPerAddress: 100,
}
