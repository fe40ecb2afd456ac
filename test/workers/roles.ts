import { isObject, type Json, type JsonObject } from '../../dev/kube/json.ts'
import type { Admin } from '../../dev/kube-real/admin.ts'

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

/** Applies one of them, as an administrator. */
export async function apply(admin: Admin, manifest: Json): Promise<void> {
  const answer = await admin.apply(pathOf(manifest), manifest)
  if (answer === undefined || answer.code > 299) throw new Error(answer?.text ?? 'no answer')
}

const PLURALS: Record<string, string> = {
  ServiceAccount: '/api/v1/namespaces/galactic-system/serviceaccounts',
  Namespace: '/api/v1/namespaces',
  Role: '/apis/rbac.authorization.k8s.io/v1/namespaces/galactic-system/roles',
  RoleBinding: '/apis/rbac.authorization.k8s.io/v1/namespaces/galactic-system/rolebindings',
  ClusterRole: '/apis/rbac.authorization.k8s.io/v1/clusterroles',
  ClusterRoleBinding: '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings',
}

function pathOf(manifest: Json): string {
  const { kind, metadata }: JsonObject = isObject(manifest) ? manifest : {}
  const name = isObject(metadata) ? metadata['name'] : undefined
  return `${PLURALS[String(kind)]}/${String(name)}`
}

/** A token of the service account that they make. */
export async function tokenOf(admin: Admin): Promise<string> {
  const answer = await admin.call(
    'POST',
    '/api/v1/namespaces/galactic-system/serviceaccounts/network-load-balancers/token',
    { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} },
  )
  const status = answer?.body['status']
  if (!isObject(status)) throw new Error(answer?.text ?? 'no answer')
  return String(status['token'])
}
