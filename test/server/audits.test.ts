import { serverAudits } from 'graphql-http'
import { expect, test } from 'vitest'
import { useService } from './service.ts'

const service = useService()

/** As graphql-http's audits ask, but as somebody who may. */
const asAlice = (url: string, { headers, ...init }: RequestInit = {}) =>
  fetch(url, { ...init, headers: { ...headers, authorization: 'Bearer alice' } })

const audits = serverAudits({ url: () => service.url(), fetchFn: asAlice })

test('there are 61 audits', () => {
  expect(audits).toHaveLength(61)
})

test.each(audits.map((audit) => [audit.id, audit.name, audit] as const))(
  'audit %s: %s',
  async (_id, _name, audit) => {
    const result = await audit.fn()
    expect(result.status === 'ok' ? 'ok' : result.reason).toBe('ok')
  },
)
