/** A position in the log: everything up to it, in the order (xid, seq), has been seen. */
export type Position = {
  /** Of the log; another one is another log. */
  epoch: string
  /** A 64-bit transaction id, as text. */
  xid: string
  /** A bigint, as text. */
  seq: string
}

/** The cursor can't be continued from: older than what is kept, of another epoch, or beyond the head. */
export class CursorLost extends Error {
  override name = 'CursorLost'
}

const SHAPE = /^([0-9a-f-]{36})\.(0|[1-9]\d{0,18})\.(0|[1-9]\d{0,17})$/

/** The opaque cursor that clients keep. */
export const writeCursor = ({ epoch, xid, seq }: Position): string =>
  Buffer.from(`${epoch}.${xid}.${seq}`).toString('base64url')

/** undefined: not a cursor of ours. */
export function readCursor(cursor: string): Position | undefined {
  const [, epoch, xid, seq] = SHAPE.exec(Buffer.from(cursor, 'base64url').toString()) ?? []
  if (epoch === undefined || xid === undefined || seq === undefined) return undefined
  // Decoding passes over what base64url doesn't have, and over what is too short for a byte.
  return writeCursor({ epoch, xid, seq }) === cursor ? { epoch, xid, seq } : undefined
}

/** Whether one position of a log comes before another. */
export function isBefore(one: Position, other: Position): boolean {
  if (one.xid !== other.xid) return BigInt(one.xid) < BigInt(other.xid)
  return one.seq !== other.seq && BigInt(one.seq) < BigInt(other.seq)
}
