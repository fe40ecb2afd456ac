import { validateHeaderValue } from 'node:http'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  defaultHealthCheck,
  healthCheckIssues,
  mergeHealthCheck,
} from '../../src/domain/healthCheck.ts'
import { hostHeaderMeant, isHostHeader } from '../../src/domain/hostHeader.ts'

describe('a host of a health check', () => {
  test.each([
    'app',
    'app.example.com',
    'xn--bcher-kva.example',
    '3com.example',
    'a'.repeat(63),
    '10.0.0.1',
    '[fd00::1]',
    'app.example:8443',
    '10.0.0.1:1',
    '[fd00::1]:65535',
  ])('is taken: %s', (host) => {
    expect(isHostHeader(host)).toBe(true)
  })

  test.each([
    '',
    '[::1',
    '::1]',
    '[::1]]',
    '[]',
    '[::1]x',
    '[::1]8080',
    '[10.0.0.1]',
    '[app]',
    '[fe80::1%eth0]',
    '[::ffff:10.0.0.1]',
    'fd00::1',
    'app:',
    'app:0',
    'app:65536',
    'app:080',
    'app:80:80',
    ':80',
    '.',
    'app.',
    '.app',
    'a..b',
    '-app',
    'app-',
    'a'.repeat(64),
    `${'a.'.repeat(126)}aa`,
    '10.1',
    '1.2.3.999',
    '0x7f.1',
    'app.0x',
    'a b',
    'app\n',
    'bücher.example',
    'user@app',
    'app/path',
  ])('is refused: %j', (host) => {
    expect(isHostHeader(host)).toBe(false)
  })

  test('that is refused says what was meant, where that is clear', () => {
    const refused = (host: string) =>
      healthCheckIssues(
        mergeHealthCheck(defaultHealthCheck('TCP'), { probe: { http: { host } } }, 'TCP'),
        'TCP',
      ).map(({ code, path, suggestion }) => [code, path.join('.'), suggestion])
    const at = 'healthCheck.probe.http.host'
    expect(refused('fd00::1')).toEqual([['INVALID_HOST', at, '[fd00::1]']])
    expect(refused('app.example.')).toEqual([['INVALID_HOST', at, 'app.example']])
    expect(refused('app.example.:80')).toEqual([['INVALID_HOST', at, 'app.example:80']])
    expect(refused('[::1')).toEqual([['INVALID_HOST', at, null]])
    expect(refused('app.example')).toEqual([])
  })
})

const label = fc.stringMatching(/^[a-z0-9]([a-z0-9-]{0,10}[a-z0-9])?$/)
const valid = fc
  .tuple(
    fc.oneof(
      fc
        .tuple(fc.array(label, { maxLength: 3 }), fc.stringMatching(/^[a-z]{1,8}$/))
        .map(([labels, last]) => [...labels, last].join('.')),
      fc.ipV4(),
      fc
        .array(fc.integer({ min: 0x1000, max: 0xfffe }), { minLength: 8, maxLength: 8 })
        .map((parts) => `[${parts.map((part) => part.toString(16)).join(':')}]`),
    ),
    fc.option(fc.integer({ min: 1, max: 65_535 }), { nil: undefined }),
  )
  .map(([host, port]) => (port === undefined ? host : `${host}:${port}`))

/** Texts of what hosts are made of, and valid ones with something taken out or put in. */
const odd = fc.oneof(
  fc.string({ unit: fc.constantFrom(...'a1f.:[]-%@/ _x'), maxLength: 14 }),
  valid.chain((host) =>
    fc
      .tuple(fc.nat(host.length), fc.nat(2), fc.constantFrom('', '[', ']', ':', '.', '-', '%', ' '))
      .map(([at, gone, put]) => `${host.slice(0, at)}${put}${host.slice(at + gone)}`),
  ),
)

test('every name and address with or without a port is taken', () => {
  fc.assert(fc.property(valid, (host) => isHostHeader(host)))
})

test('what is taken is one host and port wherever it is read, and can be sent', () => {
  const read = (host: string) => {
    const { hostname, port, pathname, username } = new URL(`http://${host}/`)
    return { hostname, port, pathname, username }
  }
  fc.assert(
    fc.property(odd, (host) => {
      if (!isHostHeader(host)) return
      const [, name = '', port = ''] =
        /^(.*?)(?::(\d+))?$/.exec(host.replace(/^\[.*\]/, '[]')) ?? []
      const seen = read(host)
      expect(seen.pathname).toBe('/')
      expect(seen.username).toBe('')
      expect(seen.port).toBe(port === '80' ? '' : port)
      expect(name === '[]' || seen.hostname === name.toLowerCase()).toBe(true)
      validateHeaderValue('host', host)
    }),
    { numRuns: 2_000 },
  )
})

test('what is suggested is taken', () => {
  fc.assert(
    fc.property(odd, (host) => {
      const meant = hostHeaderMeant(host)
      expect(meant === null || isHostHeader(meant)).toBe(true)
    }),
  )
})
