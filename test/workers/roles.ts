import { isObject, type Json, type JsonObject } from '../../dev/kube/json.ts'

/** One verb on one kind. */
export type Right = { verb: string; resource: string; name: string }

type Rule = { apiGroups: Json; resources: string[]; verbs: string[] }

/** Every right that the roles among some manifests give. */
export const rightsOf = (manifests: Json[]): Right[] =>
  manifests
    .filter(isObject)
    .flatMap(rulesOf)
    .flatMap(({ resources, verbs }) =>
      resources.flatMap((resource) =>
        verbs.map((verb) => ({ verb, resource, name: `${verb} ${resource}` })),
      ),
    )

/** The same manifests without one right. */
export const without = (manifests: Json[], right: Right): Json[] =>
  manifests.filter(isObject).map((manifest) => {
    if (!('rules' in manifest)) return manifest
    const rules = rulesOf(manifest).flatMap((rule) => {
      if (!rule.resources.includes(right.resource)) return [rule]
      const others = rule.resources.filter((resource) => resource !== right.resource)
      return [
        { ...rule, resources: others },
        {
          ...rule,
          resources: [right.resource],
          verbs: rule.verbs.filter((verb) => verb !== right.verb),
        },
      ].filter(({ resources, verbs }) => resources.length > 0 && verbs.length > 0)
    })
    return { ...manifest, rules }
  })

/** Roles and bindings of their own for a user. */
export const bound = (manifests: Json[], user: string): Json[] =>
  manifests.filter(isObject).flatMap((manifest): Json[] => {
    const { metadata, roleRef } = manifest
    if (!isObject(metadata)) return []
    const renamed = { ...manifest, metadata: { ...metadata, name: user } }
    if (isObject(roleRef)) {
      const subjects = [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: user }]
      return [{ ...renamed, roleRef: { ...roleRef, name: user }, subjects }]
    }
    return 'rules' in manifest ? [renamed] : []
  })

function rulesOf({ rules }: JsonObject): Rule[] {
  if (!Array.isArray(rules)) return []
  return rules.filter(isObject).map(({ apiGroups = [], resources, verbs }) => ({
    apiGroups,
    resources: texts(resources),
    verbs: texts(verbs),
  }))
}

const texts = (value: Json | undefined): string[] => (Array.isArray(value) ? value.map(String) : [])
