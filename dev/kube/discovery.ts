import type { Api } from './api.ts'
import type { Definition } from './definition.ts'
import { apiVersionOf } from './definition.ts'
import type { Json, JsonObject } from './json.ts'

const VERBS = ['delete', 'deletecollection', 'get', 'list', 'patch', 'create', 'update', 'watch']
const NAMESPACE_VERBS = ['create', 'delete', 'get', 'list', 'patch', 'update', 'watch']

function groupOf(name: string, versions: Set<string>): JsonObject {
  const all = [...versions].map((version) => ({ groupVersion: `${name}/${version}`, version }))
  return { name, versions: all, preferredVersion: all[0] ?? {} }
}

function versionsByGroup(api: Api): Map<string, Set<string>> {
  const groups = new Map<string, Set<string>>()
  for (const { group, version } of api.definitions.values()) {
    if (group === '') continue
    groups.set(group, (groups.get(group) ?? new Set()).add(version))
  }
  return groups
}

function resourceEntries(definition: Definition): Json[] {
  const { plural, singular, namespaced, kind, shortNames } = definition
  const entry: JsonObject = { name: plural, singularName: singular, namespaced, kind }
  const whole = {
    ...entry,
    verbs: definition.builtin === 'namespace' ? NAMESPACE_VERBS : VERBS,
    ...(shortNames.length === 0 ? {} : { shortNames: [...shortNames] }),
  }
  const status = {
    ...entry,
    name: `${plural}/status`,
    singularName: '',
    verbs: ['get', 'patch', 'update'],
  }
  return definition.hasStatus ? [whole, status] : [whole]
}

/** Answers of the discovery paths below /api and /apis; undefined: no such group or version. */
export function discovery(api: Api, path: string[]): JsonObject | undefined {
  const [root, group, version] = path
  if (root === 'api') {
    if (group === undefined)
      return { kind: 'APIVersions', versions: ['v1'], serverAddressByClientCIDRs: [] }
    return group === 'v1' && version === undefined ? resources(api, '', 'v1') : undefined
  }
  const groups = versionsByGroup(api)
  if (group === undefined) {
    const all = [...groups].map(([name, versions]) => groupOf(name, versions))
    return { kind: 'APIGroupList', apiVersion: 'v1', groups: all }
  }
  const versions = groups.get(group)
  if (versions === undefined) return undefined
  if (version === undefined)
    return { kind: 'APIGroup', apiVersion: 'v1', ...groupOf(group, versions) }
  return versions.has(version) ? resources(api, group, version) : undefined
}

function resources(api: Api, group: string, version: string): JsonObject {
  const served = [...api.definitions.values()].filter(
    (one) => one.group === group && one.version === version,
  )
  return {
    kind: 'APIResourceList',
    apiVersion: 'v1',
    groupVersion: apiVersionOf({ group, version }),
    resources: served.flatMap(resourceEntries),
  }
}
