import querystring from 'node:querystring'
import type { Api } from './api.ts'
import type { Target } from './request.ts'

/** What a path leads to. */
export type Route =
  | { to: 'health' }
  | { to: 'version' }
  | { to: 'openapi-index' }
  | { to: 'openapi'; group: string; version: string }
  | { to: 'discovery'; path: string[] }
  | { to: 'object'; target: Target }
  | { to: 'no-resource' }
  | { to: 'no-subresource'; definition: Target['definition']; name: string }
  | { to: 'nothing' }

const NOTHING: Route = { to: 'nothing' }

/** Takes a path apart; the kinds served now decide what it means. */
export function routeOf(api: Api, pathname: string): Route {
  const path = pathname
    .split('/')
    .filter((part) => part !== '')
    .map((part) => querystring.unescape(part))
  const [root, second, third] = path
  switch (root) {
    case 'readyz':
    case 'livez':
    case 'healthz':
      return { to: 'health' }
    case 'version':
      return path.length === 1 ? { to: 'version' } : NOTHING
    case 'openapi':
      return openapiRoute(path)
    case 'api':
      return coreRoute(api, path)
    case 'apis':
      if (path.length <= 3) return { to: 'discovery', path }
      return objectRoute(api, second ?? '', third ?? '', path.slice(3))
    default:
      return NOTHING
  }
}

/** The core group's own paths answer by a Status where they lead nowhere, unlike all others. */
function coreRoute(api: Api, path: string[]): Route {
  const [, version, ...rest] = path
  const route: Route =
    rest.length === 0 ? { to: 'discovery', path } : objectRoute(api, '', version ?? '', rest)
  const nowhere = route.to === 'nothing' || (version !== undefined && version !== 'v1')
  return nowhere ? { to: 'no-resource' } : route
}

function openapiRoute(path: string[]): Route {
  const [, v3, kind, first, second] = path
  if (v3 !== 'v3') return NOTHING
  if (path.length === 2) return { to: 'openapi-index' }
  if (kind === 'api' && path.length === 4) return { to: 'openapi', group: '', version: first ?? '' }
  if (kind === 'apis' && path.length === 5) {
    return { to: 'openapi', group: first ?? '', version: second ?? '' }
  }
  return NOTHING
}

function objectRoute(api: Api, group: string, version: string, rest: string[]): Route {
  const [first, second, third] = rest
  const inNamespace = first === 'namespaces' && third !== undefined
  const scoped = inNamespace ? api.serves(group, version, third) : undefined
  if (scoped?.namespaced) {
    return objectTarget(scoped, second ?? '', rest.slice(3))
  }
  const definition = api.serves(group, version, first ?? '')
  if (definition === undefined) return NOTHING
  if (definition.namespaced && rest.length > 1) return NOTHING
  return objectTarget(definition, '', rest.slice(1))
}

function objectTarget(definition: Target['definition'], namespace: string, rest: string[]): Route {
  const [name = '', subresource] = rest
  if (rest.length > 2) return NOTHING
  if (subresource === undefined) {
    return { to: 'object', target: { definition, namespace, name, subresource: '' } }
  }
  if (subresource !== 'status' || !definition.hasStatus) {
    return { to: 'no-subresource', definition, name }
  }
  return { to: 'object', target: { definition, namespace, name, subresource } }
}
