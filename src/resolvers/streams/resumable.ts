import type { Context } from '../../schema/context.ts'

/** What whoever reads a stream of one object knows by it: the version told last. `position`: up to where in the log. */
export type Standing = { version: number; position: string }

/** A stream of one object that another can go on with where it stands. */
export interface Resumable<T extends object> extends AsyncGenerator<T> {
  /** undefined before all was told that there was at first, and where nothing but the end is to come. */
  standing(): Standing | undefined
  /** What comes after, in the context of another who may see the same. */
  from(standing: Standing, context: Context): Resumable<T>
}

export function isResumable<T extends object>(
  source: AsyncIterable<unknown>,
): source is Resumable<T> {
  return 'standing' in source && 'from' in source
}
