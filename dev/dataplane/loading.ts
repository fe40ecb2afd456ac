import type { Load } from './engine.ts'
import type { World } from './world.ts'

/** Forgets what gateways loaded of a rule; what found no room may find some now. */
export function unload(world: World, name: string): void {
  for (const [node, engine] of world.engines) {
    const failed = world.advertising.get(node)?.delete(name) ?? false
    if (!engine.remove(name) && !failed) continue
    world.touchGateway(node)
    for (const other of engine.errors.keys()) world.touch(`rule ${other}`)
  }
}

/** Has all gateways load a rule. Answers by node why one couldn't. */
export function loadEverywhere(world: World, load: Load): Map<string, string> {
  const failures = new Map<string, string>()
  for (const [node, engine] of world.engines) {
    const before = engine.errors.get(load.rule)
    const error = engine.apply(load)
    if (error !== undefined) failures.set(node, error)
    if (error !== before) world.touchGateway(node)
  }
  return failures
}
