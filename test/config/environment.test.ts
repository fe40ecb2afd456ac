import { describe, expect, test } from 'vitest'
import {
  ConfigurationError,
  readEnvironment,
  requireDatabaseUrl,
  requireIdentityProvider,
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
      oidcIssuer: undefined,
      oidcAudience: undefined,
      oidcJwksUrl: undefined,
      authz: 'claims',
      authzKubeUrl: undefined,
      persistedDocuments: undefined,
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
      OIDC_ISSUER: 'https://auth.example.com/realms/a',
      OIDC_AUDIENCE: 'load-balancers',
      OIDC_JWKS_URL: 'http://localhost:8080/keys',
      AUTHZ: 'sar',
      AUTHZ_KUBE_URL: 'https://api.example.com',
      PERSISTED_DOCUMENTS: '/etc/lb/documents.json',
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
      oidcIssuer: 'https://auth.example.com/realms/a',
      oidcAudience: 'load-balancers',
      oidcJwksUrl: 'http://localhost:8080/keys',
      authz: 'sar',
      authzKubeUrl: 'https://api.example.com',
      persistedDocuments: '/etc/lb/documents.json',
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
    ['TRUSTED_PROXY', '010.0.0.1'],
    ['TRUSTED_PROXY', 'fe80::1%eth0'],
    ['LOG_LEVEL', 'a\nb'],
    ['OIDC_ISSUER', 'auth.example.com'],
    ['OIDC_ISSUER', 'http://auth.example.com'],
    ['OIDC_ISSUER', 'https://auth.example.com/?tenant=a'],
    ['OIDC_JWKS_URL', 'file:///etc/keys'],
    ['AUTHZ', 'rbac'],
    ['AUTHZ_KUBE_URL', 'http://10.0.0.1:6443'],
    ['AUTHZ_KUBE_URL', 'https://user:secret@api.example.com'],
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

  const provider = { OIDC_ISSUER: 'https://auth.example.com', OIDC_AUDIENCE: 'lb' }

  test.each([
    ['OIDC_ISSUER', {}],
    ['OIDC_AUDIENCE', { OIDC_ISSUER: 'https://auth.example.com' }],
    ['AUTHZ_KUBE_URL', { ...provider, AUTHZ: 'sar' }],
  ])('without %s is refused where callers have to be known', (name, variables) => {
    const read = () => requireIdentityProvider(readEnvironment(variables))
    expect(read).toThrow(new RegExp(`^${name}: expected [^\\n]+$`))
  })

  test('reads reviews only where permissions come from them', () => {
    const url = { AUTHZ_KUBE_URL: 'https://api.example.com' }
    const read = (variables: Record<string, string>) =>
      requireIdentityProvider(readEnvironment({ ...provider, ...url, ...variables })).reviewsUrl
    expect(read({})).toBeUndefined()
    expect(read({ AUTHZ: 'sar' })).toBe('https://api.example.com')
  })
})
