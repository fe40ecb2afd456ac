import { existsSync, readFileSync, unwatchFile, watchFile, writeFileSync } from 'node:fs'
import { isRecord, parseJson } from '../../src/clusters/failure.ts'
import { BEHAVIOURS, type Behaviour, type Listener } from './listeners.ts'

/** The file is looked at this often (ms). */
const LOOK = 200

type Switched = Pick<Listener, 'behave'> & { address: string }

/**
 * Lets people switch what listens behind endpoints: by a file of addresses and behaviours, `{}` where it
 * is missing. Those that it doesn't name answer; what isn't a behaviour is none. Answers how to end it.
 */
export async function followBehaviours(
  file: string,
  endpoints: readonly Switched[],
): Promise<() => Promise<void>> {
  if (!existsSync(file)) writeFileSync(file, '{}\n')
  const now = new Map<string, Behaviour>()
  const look = async () => {
    // Editors take a file away before they put the new one there.
    const wanted = behavioursFrom(existsSync(file) ? readFileSync(file, 'utf8') : '{}')
    for (const { address, behave } of endpoints) {
      const behaviour = wanted.get(address) ?? 'answer'
      if (behaviour === (now.get(address) ?? 'answer')) continue
      now.set(address, behaviour)
      await behave(behaviour)
    }
  }
  let looking = look()
  await looking
  const again = () => {
    looking = looking.then(look)
  }
  watchFile(file, { interval: LOOK, persistent: false }, again)
  return async () => {
    unwatchFile(file, again)
    await looking
  }
}

function behavioursFrom(text: string): Map<string, Behaviour> {
  const value = parseJson(text)
  return new Map(
    Object.entries(isRecord(value) ? value : {}).flatMap(([address, word]) => {
      const behaviour = BEHAVIOURS.find((each) => each === word)
      return behaviour === undefined ? [] : [[address, behaviour] as const]
    }),
  )
}
