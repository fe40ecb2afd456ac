import { expect } from 'vitest'
import type { Api } from '../support/api.ts'

export type Step = {
  name: string
  status: string
  reason: string
  message: string
  remedy: string | null
  evidence: { what: string; value: string; seenAt: string | null; cluster?: string | null }[]
}
export type Explanation = { reachable: boolean; firstBroken: Step | null; steps: Step[] }

const query = (evidence: string) => {
  const step = `name status reason message remedy evidence { what value seenAt ${evidence} }`
  return `query ($id: ID!) { loadBalancer(id: $id) { explain { reachable firstBroken { ${step} } steps { ${step} } } } }`
}
const FOR = { tenants: query(''), operators: query('cluster') }

/** What is explained to tenants, or to operators with the names of clusters. */
export async function explained(
  api: Api,
  id: string,
  whom: keyof typeof FOR = 'tenants',
): Promise<Explanation> {
  const { explain } = await api.get<{ explain: Explanation }>(FOR[whom], { id })
  return explain
}

/** Waits until the first broken link is the one, for the reason; null: until there is none. */
export async function explainedAs(
  api: Api,
  id: string,
  broken: Partial<Step> | null,
): Promise<Explanation> {
  let last: Explanation | undefined
  await expect
    .poll(
      async () => {
        last = await explained(api, id)
        if (last.firstBroken === null || broken === null) return last.firstBroken
        return Object.fromEntries(
          Object.keys(broken).map((key) => [key, Reflect.get(last?.firstBroken ?? {}, key)]),
        )
      },
      { interval: 200 },
    )
    .toEqual(broken)
  if (last === undefined) throw new Error('nothing was explained')
  return last
}
