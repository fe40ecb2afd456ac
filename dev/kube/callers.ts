import type { IncomingMessage } from 'node:http'
import { TLSSocket } from 'node:tls'
import { Refusal } from './refusal.ts'
import type { Target } from './request.ts'
import type { Route } from './router.ts'
import { isTrue } from './watch.ts'

/** Known by token or certificate; without either; or with one that isn't ours. */
export type Caller = 'admin' | 'anonymous' | 'stranger'

/** Who a request is from. Whoever is known may do everything. */
export function callerOf(request: IncomingMessage, tokens: ReadonlySet<string>): Caller {
  const [scheme = '', token = ''] = (request.headers.authorization ?? '').split(' ')
  if (scheme.toLowerCase() === 'bearer' && token !== '') {
    return tokens.has(token) ? 'admin' : 'stranger'
  }
  const { socket } = request
  if (!(socket instanceof TLSSocket)) return 'anonymous'
  if (socket.authorized) return 'admin'
  return Object.keys(socket.getPeerCertificate()).length > 0 ? 'stranger' : 'anonymous'
}

/** 403, as the authorizer tells whoever has no credentials. */
export function notForAnonymous(method: string, url: URL, route: Route): Refusal {
  const user = 'User "system:anonymous" cannot'
  if (route.to !== 'object') {
    const verb = method === 'GET' ? 'get' : method.toLowerCase()
    const message = `forbidden: ${user} ${verb} path ${JSON.stringify(url.pathname)}`
    return new Refusal({ code: 403, reason: 'Forbidden', message, details: {} })
  }
  const { definition, name, namespace, subresource } = route.target
  const { group, plural } = definition
  const qualified = group === '' ? plural : `${plural}.${group}`
  const resource = subresource === '' ? plural : `${plural}/${subresource}`
  const verb = verbOf(method, route.target, url.searchParams)
  const within = definition.builtin === 'namespace' ? name : namespace
  const place = within === '' ? 'at the cluster scope' : `in the namespace "${within}"`
  return new Refusal({
    code: 403,
    reason: 'Forbidden',
    message: `${qualified}${name === '' ? '' : ` "${name}"`} is forbidden: ${user} ${verb} resource "${resource}" in API group "${group}" ${place}`,
    details: {
      ...(name === '' ? {} : { name }),
      ...(group === '' ? {} : { group }),
      kind: plural,
    },
  })
}

function verbOf(method: string, target: Target, query: URLSearchParams): string {
  switch (method) {
    case 'GET':
      if (target.name !== '') return 'get'
      return isTrue(query.get('watch')) ? 'watch' : 'list'
    case 'POST':
      return 'create'
    case 'PUT':
      return 'update'
    case 'DELETE':
      return target.name === '' ? 'deletecollection' : 'delete'
    default:
      return method.toLowerCase()
  }
}
