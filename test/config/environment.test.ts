import { describe, expect, test } from 'vitest'
import {
  ConfigurationError,
  readEnvironment,
  requireDatabaseUrl,
} from '../../src/config/environment.ts'

describe('an environment', () => {
  test('without variables holds the defaults', () => {
    expect(readEnvironment({})).toEqual({
      port: 4000,
      host: undefined,
      metricsPort: undefined,
      databaseUrl: undefined,
      kubeconfig: [],
      corsOrigins: [],
      logLevel: 'info',
      eventRetentionDays: 90,
      introspection: true,
      trustedProxies: [],
    })
  })

  test('with empty variables holds the defaults too', () => {
    const names = ['PORT', 'HOST', 'METRICS_PORT', 'DATABASE_URL', 'CORS_ORIGINS', 'LOG_LEVEL']
    const empty = Object.fromEntries(names.map((name) => [name, ' ']))
    expect(readEnvironment(empty)).toEqual(readEnvironment({}))
  })

  test('is read from the variables', () => {
    const environment = readEnvironment({
      PORT: '0',
      HOST: '::',
      METRICS_PORT: '9191',
      DATABASE_URL: 'postgresql://lb:secret@db.example/lb?sslmode=verify-full',
      KUBECONFIG: '/etc/kube/a:/etc/kube/b',
      CORS_ORIGINS: 'https://portal.example.com, http://localhost:3000',
      LOG_LEVEL: 'debug',
      EVENT_RETENTION_DAYS: '30',
      INTROSPECTION: 'off',
      TRUSTED_PROXY: '10.0.0.0/8, 2001:db8::1',
    })
    expect(environment).toEqual({
      port: 0,
      host: '::',
      metricsPort: 9191,
      databaseUrl: 'postgresql://lb:secret@db.example/lb?sslmode=verify-full',
      kubeconfig: ['/etc/kube/a', '/etc/kube/b'],
      corsOrigins: ['https://portal.example.com', 'http://localhost:3000'],
      logLevel: 'debug',
      eventRetentionDays: 30,
      introspection: false,
      trustedProxies: ['10.0.0.0/8', '2001:db8::1'],
    })
    expect(Object.isFrozen(environment)).toBe(true)
  })

  test.each([
    ['PORT', '-1'],
    ['PORT', '65536'],
    ['PORT', '4e3'],
    ['PORT', '0x10'],
    ['METRICS_PORT', 'on'],
    ['DATABASE_URL', 'mysql://localhost/lb'],
    ['DATABASE_URL', 'localhost'],
    ['CORS_ORIGINS', '*'],
    ['CORS_ORIGINS', 'https://portal.example.com/'],
    ['CORS_ORIGINS', 'https://a.example.com, portal.example.com'],
    ['LOG_LEVEL', 'verbose'],
    ['EVENT_RETENTION_DAYS', '0'],
    ['EVENT_RETENTION_DAYS', '1.5'],
    ['INTROSPECTION', 'false'],
    ['TRUSTED_PROXY', '10.0.0.0/33'],
    ['TRUSTED_PROXY', '10.0.0.0/8/8'],
    ['TRUSTED_PROXY', 'proxy.example.com'],
    ['LOG_LEVEL', 'a\nb'],
  ])('with %s=%j is refused in one line that names it', (name, value) => {
    const read = (): unknown => readEnvironment({ [name]: value })
    expect(read).toThrow(ConfigurationError)
    expect(read).toThrow(new RegExp(`^${name}: expected [^\\n]+$`))
  })

  test("doesn't repeat a database's password when its URL is wrong", () => {
    const read = (): unknown => readEnvironment({ DATABASE_URL: 'http://u:secret@host/db' })
    expect(read).toThrow(/^DATABASE_URL: expected (?!.*secret).*$/)
  })

  test('without DATABASE_URL is refused where a process needs it', () => {
    expect(() => requireDatabaseUrl(readEnvironment({}))).toThrow(
      /^DATABASE_URL: expected a URL like postgres:/,
    )
  })
})
