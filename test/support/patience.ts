/**
 * After this time (ms) a test gives up waiting for what should come. It only bounds a failure: what takes 2 s on a
 * quiet machine was seen to take 20 on a busy one with two cores and real API servers.
 */
export const PATIENCE = 60_000
