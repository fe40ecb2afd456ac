import { addressOfCidr } from '../../src/ipam/address.ts'
import type { VpcAttachment } from '../../src/rules/objects.ts'
import type { AddressFamily } from '../../src/rules/wanted.ts'

/** One address of one attachment that is up: it has an id of its VPC and a node. */
export type Place = {
  /** `namespace/name` of the attachment. */
  attachment: string
  vpc: string
  node: string
  address: string
  family: AddressFamily
  egressKind: 'veth' | 'tap'
}

/** The attachments of one cluster as its data plane reads them. */
export class Inventory {
  readonly #places = new Map<string, Place[]>()
  readonly #byAddress = new Map<string, Set<Place>>()
  readonly #byNodeAddress = new Map<string, Set<Place>>()
  readonly #byVpc = new Map<string, Map<string, VpcAttachment>>()
  readonly #vpcOf = new Map<string, string>()

  /** Takes over what is known of one attachment now; undefined: it is gone. Answers the VPCs it touches. */
  take(key: string, attachment: VpcAttachment | undefined): Set<string> {
    const touched = new Set<string>()
    for (const place of this.#places.get(key) ?? []) {
      drop(this.#byAddress, `${place.vpc} ${place.address}`, place)
      drop(this.#byNodeAddress, `${place.node} ${place.address}`, place)
    }
    this.#places.delete(key)
    const before = this.#vpcOf.get(key)
    if (before !== undefined) {
      touched.add(before)
      this.#byVpc.get(before)?.delete(key)
      this.#vpcOf.delete(key)
    }
    const vpc = attachment?.status?.vpc
    if (attachment === undefined || vpc === undefined) return touched
    touched.add(vpc)
    this.#vpcOf.set(key, vpc)
    const members = this.#byVpc.get(vpc) ?? new Map<string, VpcAttachment>()
    this.#byVpc.set(vpc, members.set(key, attachment))
    const places = placesOf(key, attachment)
    this.#places.set(key, places)
    for (const place of places) {
      add(this.#byAddress, `${place.vpc} ${place.address}`, place)
      add(this.#byNodeAddress, `${place.node} ${place.address}`, place)
    }
    return touched
  }

  /** Where an address of a VPC lives in this cluster; undefined: nowhere. */
  resolve(vpc: string, address: string): Place | undefined {
    return this.#byAddress.get(`${vpc} ${address}`)?.values().next().value
  }

  /** The VPCs that have this address on this node: a binding doesn't say which it means. */
  vpcsOn(node: string, address: string): string[] {
    const places = this.#byNodeAddress.get(`${node} ${address}`) ?? []
    return [...new Set([...places].map(({ vpc }) => vpc))]
  }

  /** The attachments of a VPC, in any namespace, that have its id; key `namespace/name`. */
  attachmentsOf(vpc: string): ReadonlyMap<string, VpcAttachment> {
    return this.#byVpc.get(vpc) ?? new Map<string, VpcAttachment>()
  }
}

/** The addresses of an attachment that has a VPC's id and a node; none before that. */
export function placesOf(key: string, attachment: VpcAttachment): Place[] {
  const { vpc, node } = attachment.status ?? {}
  if (vpc === undefined || node === undefined) return []
  const { addresses = [], mode = 'Netns' } = attachment.spec.interface
  const places: Place[] = []
  for (const cidr of addresses) {
    const parsed = addressOfCidr(cidr)
    if ('code' in parsed) continue
    const egressKind = mode === 'Netns' ? 'veth' : 'tap'
    places.push({ attachment: key, vpc, node, egressKind, ...parsed })
  }
  return places
}

function add(index: Map<string, Set<Place>>, key: string, place: Place): void {
  const places = index.get(key)
  if (places === undefined) index.set(key, new Set([place]))
  else places.add(place)
}

function drop(index: Map<string, Set<Place>>, key: string, place: Place): void {
  const places = index.get(key)
  places?.delete(place)
  if (places?.size === 0) index.delete(key)
}
