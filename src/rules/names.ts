import { createHash } from 'node:crypto'

/**
 * Names of our objects: made of ids alone, so that the same wish always has the same name and no
 * tenant's text gets into a cluster.
 */

/** 48 bits: two of the at most 8 addresses of one load balancer never meet in practice. */
const SHORT_HASH_DIGITS = 12

const shortHash = (...parts: string[]): string =>
  createHash('sha256').update(parts.join('\n')).digest('hex').slice(0, SHORT_HASH_DIGITS)

/** What the names of all objects of one load balancer begin with. */
export const namePrefix = (loadBalancer: string): string =>
  `lb-${loadBalancer.replaceAll('-', '').toLowerCase()}-`

/** The rule of one virtual address: 48 characters, so it also fits a label's value (63). */
export const ruleName = (loadBalancer: string, vip: string): string =>
  namePrefix(loadBalancer) + shortHash(vip)

const RULE_NAME = /^lb-([0-9a-f]{8})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{12})-/

/** The load balancer whose rule has that name; undefined: no rule of ours is called so. */
export const loadBalancerOf = (rule: string): string | undefined =>
  RULE_NAME.exec(rule)?.slice(1).join('-')

/** The binding of one backend to the virtual address of a rule: 61 characters. */
export const bindingName = (rule: string, backendAddress: string, node: string): string =>
  `${rule}-${shortHash(backendAddress, node)}`

/** Whether a name is one of ours for bindings; the data plane's own begin with the rule's name too. */
export const isBindingName = (name: string): boolean =>
  /^lb-[0-9a-f]{32}-[0-9a-f]{12}-[0-9a-f]{12}$/.test(name)

const SERVING_PREFIX = 'lb.networking.datumapis.com/'
const SERVING_LABEL =
  /^lb\.networking\.datumapis\.com\/([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/

/** The label by which the *selector* dialect finds the attachments of a load balancer. */
export const servingLabel = (loadBalancer: string): string =>
  SERVING_PREFIX + loadBalancer.toLowerCase()

/** The load balancers whose serving label is among an attachment's labels. */
export const servingLoadBalancers = (labels: Record<string, string>): string[] =>
  Object.keys(labels).flatMap((label) => SERVING_LABEL.exec(label)?.[1] ?? [])

/** That label's value. */
export const SERVING = 'serving'

/** The advertisement that the data plane makes of a rule on one gateway node. */
export const advertisementName = (rule: string, node: string, ipv4: boolean): string =>
  `${rule}-${node}-${ipv4 ? 'v4' : 'v6'}`
