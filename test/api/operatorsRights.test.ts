import { isInputObjectType, isNonNullType, isObjectType } from 'graphql'
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Permission } from '../../src/schema/context.ts'
import { ANYWHERE, type Identify, permissionIds } from '../../src/server/caller.ts'
import { operatorSchema, schema } from '../../src/server/schema.ts'
import { type RunningServer, startServer } from '../../src/server/server.ts'
import { useInstallation } from '../support/installation.ts'

const installation = useInstallation({ workers: false })

/** What each root field needs that only operators are served. */
const NEEDED: Record<string, [Permission, field: string]> = {
  clusters: ['clusters.list', '{ clusters { totalCount } }'],
  cluster: ['clusters.get', '{ cluster(name: "x") { id } }'],
  addressPools: ['addresspools.list', '{ addressPools { totalCount } }'],
  projects: ['projects.list', '{ projects { totalCount } }'],
  createRegion: ['regions.create', 'code: "-", displayName: "", cityCode: ""'],
  registerCluster: ['clusters.create', 'name: "x", region: "-", context: ""'],
  updateCluster: ['clusters.update', 'id: "x"'],
  removeCluster: ['clusters.delete', 'id: "x"'],
  forgetCluster: ['clusters.delete', 'id: "x"'],
  createAddressPool: ['addresspools.create', 'name: "x", region: "-", prefix: "::/64"'],
  updateAddressPool: ['addresspools.update', 'id: "x"'],
  deleteAddressPool: ['addresspools.delete', 'id: "x"'],
  setQuota: ['quotas.update', 'project: "x", resource: "x"'],
  setProjectRelease: ['projects.update', 'project: "-", released: true'],
  reportReachability: ['reachability.report', 'vantage: "", results: []'],
}
const ALL = [...new Set(Object.values(NEEDED).map(([permission]) => permission))]
const queryOf = (name: string, field: string): string =>
  field.startsWith('{') ? field : `mutation { ${name}(input: { ${field} }) { __typename } }`

let server: RunningServer | undefined
beforeAll(async () => {
  /** `Bearer a,b`: somebody who has the permissions a and b everywhere; `tenant:…` in project demo. */
  const identify: Identify = ({ headers }) => {
    const [, where, list] = /^Bearer (tenant:)?(.*)$/.exec(headers.authorization ?? '') ?? []
    if (list === undefined) return null
    const permissions = permissionIds(list.split(',') as Permission[])
    return {
      subject: 'somebody',
      email: null,
      actor: { kind: 'OPERATOR', name: 'somebody' },
      projects: new Map([[where === undefined ? ANYWHERE : 'demo', permissions]]),
    }
  }
  const { store } = installation
  const logger = pino({ level: 'silent' })
  server = await startServer({ store, identify, logger, host: '127.0.0.1', port: 0 })
})
afterAll(() => server?.close())

const ask = async (query: string, token?: string, path = '/graphql') => {
  const response = await fetch(`${server?.url}${path}`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    },
    body: JSON.stringify({ query }),
  })
  const body = (await response.json()) as {
    data?: Record<string, { __typename?: string } | null> | null
    errors?: { message: string; extensions: { code: string } }[]
  }
  return { status: response.status, data: body.data, code: body.errors?.[0]?.extensions.code }
}

describe('what only operators are served', () => {
  test('is all told here', () => {
    const roots = (of: typeof schema) =>
      [of.getQueryType(), of.getMutationType()].flatMap((type) =>
        Object.keys(type?.getFields() ?? {}),
      )
    const theirs = new Set(roots(schema))
    const only = roots(operatorSchema).filter((name) => !theirs.has(name))
    expect(Object.keys(NEEDED).sort()).toEqual(only.sort())
  })

  test.each(Object.entries(NEEDED))(
    '%s needs its permission and no other',
    async (name, [permission, field]) => {
      const query = queryOf(name, field)
      const others = ALL.filter((one) => one !== permission)
      expect(await ask(query, others.join(','))).toMatchObject({ code: 'FORBIDDEN' })
      expect((await ask(query, permission)).code).toBeUndefined()
    },
  )

  test('is shut to tenants, whatever they have in their projects, and to nobody', async () => {
    expect(await ask('{ clusters { totalCount } }', `tenant:${ALL.join(',')}`)).toMatchObject({
      status: 403,
      code: 'FORBIDDEN',
    })
    expect(await ask('{ clusters { totalCount } }')).toMatchObject({
      status: 401,
      code: 'UNAUTHENTICATED',
    })
  })

  test('is not served at the path of a project, not to operators either', async () => {
    const { code } = await ask(
      '{ clusters { totalCount } }',
      ALL.join(','),
      '/projects/demo/graphql',
    )
    expect(code).toBe('BAD_USER_INPUT')
  })

  test('shows placements and quotas to whoever may list what they are of', async () => {
    const placements = '{ loadBalancers { nodes { placements { asked } } } }'
    const some = '{ projects { nodes { quotas { used } } } }'
    expect((await ask(some, 'projects.list')).code).toBe('FORBIDDEN')
    expect((await ask(some, 'projects.list,quotas.list')).code).toBeUndefined()
    expect((await ask(placements, 'loadbalancers.list,clusters.list')).code).toBeUndefined()
    expect((await ask(placements, 'clusters.list')).code).toBe('FORBIDDEN')
  })
})

test('every change of a tenant says at the path of operators that it needs a project', async () => {
  const mutations = Object.values(schema.getMutationType()?.getFields() ?? {})
  const everything = [
    ...ALL,
    ...['get', 'list', 'create', 'update', 'delete', 'use'].flatMap((verb) => [
      `loadbalancers.${verb}`,
      `ipv4reservations.${verb}`,
    ]),
  ].join(',')
  /** The least that an input of that type takes. */
  const least = (typeName: string): string => {
    const type = operatorSchema.getType(typeName)
    if (!isInputObjectType(type))
      return typeName === 'String' || typeName === 'ID' ? '"x"' : '"x-1"'
    if (type.isOneOf) return '{ tcp: { port: 80 } }'
    const fields = Object.values(type.getFields())
      .filter((field) => isNonNullType(field.type) && field.defaultValue === undefined)
      .map((field) => {
        const text = String(field.type).replaceAll('!', '')
        return `${field.name}: ${text.startsWith('[') ? '[]' : least(text)}`
      })
    return `{ ${fields.join(', ')} }`
  }
  expect(mutations.length).toBeGreaterThan(10)
  for (const { name, args } of mutations) {
    const input = least(String(args[0]?.type).replaceAll('!', ''))
    const result = operatorSchema.getMutationType()?.getFields()[name]?.type
    expect(isObjectType(result)).toBe(false)
    const { code } = await ask(`mutation { ${name}(input: ${input}) { __typename } }`, everything)
    expect([name, code]).toEqual([name, 'BAD_USER_INPUT'])
  }
})
