import { describe, expect, test } from 'vitest'
import {
  defaultHealthCheck,
  healthCheckIssues,
  mergeHealthCheck,
} from '../../src/domain/healthCheck.ts'
import type { HealthCheckInput } from '../../src/domain/loadBalancers/inputs.ts'
import type { HealthCheckSettings } from '../../src/domain/records.ts'

const merged = (input: HealthCheckInput, protocol: 'TCP' | 'UDP' = 'TCP') =>
  mergeHealthCheck(defaultHealthCheck(protocol), input, protocol)

describe('where nothing is said', () => {
  test("TCP is probed on the load balancer's port, UDP is not checked", () => {
    expect(defaultHealthCheck('TCP')).toEqual({
      ...{ enabled: true, probe: { kind: 'tcp', port: null }, intervalSeconds: 10 },
      ...{ timeoutSeconds: 5, rise: 2, fall: 3, minimumHealthyPercent: 0 },
    })
    expect(defaultHealthCheck('UDP').enabled).toBe(false)
  })
})

describe('what is said', () => {
  test('is merged field by field, and a probe is replaced whole', () => {
    const first = merged({ probe: { http: { port: 81, path: '/up', host: 'app' } }, rise: 4 })
    const second = mergeHealthCheck(first, { probe: { http: { path: '/ready' } } }, 'TCP')
    expect(second).toMatchObject({
      rise: 4,
      probe: {
        ...{ kind: 'http', scheme: 'HTTP', port: null, host: null, path: '/ready' },
        ...{ expectedStatuses: [{ from: 200, to: 399 }], verifyCertificate: false },
      },
    })
  })

  test('turns the check of UDP on with a port to probe, unless it is told to stay off', () => {
    expect(merged({ probe: { tcp: { port: 80 } } }, 'UDP').enabled).toBe(true)
    expect(merged({ probe: { tcp: {} } }, 'UDP').enabled).toBe(false)
    expect(merged({ enabled: false, probe: { tcp: { port: 80 } } }, 'UDP').enabled).toBe(false)
  })
})

test.each<[string, Partial<HealthCheckSettings>, string[]]>([
  ['as it is by default', {}, []],
  [
    'with an interval below one second',
    { intervalSeconds: 0 },
    ['intervalSeconds', 'timeoutSeconds'],
  ],
  ['with the longest of all', { intervalSeconds: 300, timeoutSeconds: 60, rise: 10, fall: 10 }, []],
  [
    'beyond them',
    { intervalSeconds: 301, timeoutSeconds: 61 },
    ['intervalSeconds', 'timeoutSeconds'],
  ],
  ['with a timeout as long as the interval', { timeoutSeconds: 10 }, []],
  ['with a timeout longer than the interval', { timeoutSeconds: 11 }, ['timeoutSeconds']],
  ['never rising or falling', { rise: 0, fall: 11 }, ['rise', 'fall']],
  ['with 101 percent', { minimumHealthyPercent: 101 }, ['minimumHealthyPercent']],
])('a check %s', (_, change, expected) => {
  const issues = healthCheckIssues({ ...defaultHealthCheck('TCP'), ...change }, 'TCP')
  expect(issues.map(({ path }) => path[1])).toEqual(expected)
})

test('settings made of what is suggested are valid', () => {
  const settings = { ...defaultHealthCheck('TCP'), intervalSeconds: 0, rise: 0, fall: 99 }
  const suggested = healthCheckIssues(settings, 'TCP').map(({ path, suggestion }) => [
    path[1],
    Number(suggestion),
  ])
  const mended = { ...settings, ...Object.fromEntries(suggested) }
  expect(mended).toMatchObject({ intervalSeconds: 1, timeoutSeconds: 1, rise: 1, fall: 10 })
  expect(healthCheckIssues(mended, 'TCP')).toEqual([])
})

test('a check of UDP that is on needs a port', () => {
  const issues = healthCheckIssues({ ...defaultHealthCheck('UDP'), enabled: true }, 'UDP')
  expect(issues.map(({ code }) => code)).toEqual(['PROBE_PORT_REQUIRED'])
})
