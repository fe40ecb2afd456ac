/**
 * What a process that is to know nothing of us needs all the same: where programs are, and where compiled
 * code is kept, which halves what a start takes of a processor (1.4 s against 0.7 s).
 */
export function bareEnvironment(): Record<string, string> {
  const { PATH = '', NODE_COMPILE_CACHE } = process.env
  return { PATH, ...(NODE_COMPILE_CACHE === undefined ? {} : { NODE_COMPILE_CACHE }) }
}
