import { SERVICE_VIP_BINDINGS, type ServiceVIPBinding } from '../../src/rules/objects.ts'
import { isTrue, type Said, withCondition } from './conditions.ts'
import type { Action } from './jobs.ts'
import { canonical } from './vips.ts'
import type { Registration, World } from './world.ts'

export const BINDING_FINALIZER = 'galactic.datum.net/servicevipbinding-teardown'

/** What is to be done about one binding by the node it targets. */
export function planBinding(world: World, name: string): Action | undefined {
  const binding = world.binding(name)
  if (binding === undefined) {
    // Taken away without its finalizer: its rows stay, as they would in a kernel.
    world.registered.delete(name)
    return undefined
  }
  const { generation, uid, deletionTimestamp } = binding.metadata
  if (world.stuckBindings.has(name) && world.stuckBindings.get(name) === generation)
    return undefined
  if (deletionTimestamp !== undefined) return planUnbind(world, binding)
  const known = world.registered.get(name)
  const registered = known?.uid === uid && known?.generation === generation
  if (registered && isTrue(binding.status?.conditions, 'Bound', generation)) return undefined
  return {
    step: 'bind',
    subjects: world.subjectsOfVip(binding.spec.vipAddress),
    run: () => bind(world, binding),
  }
}

async function bind(world: World, binding: ServiceVIPBinding): Promise<'seen'> {
  const { name } = binding.metadata
  let current = binding
  const finalizers = binding.metadata.finalizers ?? []
  if (!finalizers.includes(BINDING_FINALIZER)) {
    current = await setFinalizers(world, binding, [...finalizers, BINDING_FINALIZER])
    world.followed.bindings.learn(current)
  }
  const said = register(world, current)
  const { generation, resourceVersion } = current.metadata
  if (said.status === 'False') world.stuckBindings.set(name, generation)
  const conditions = withCondition(current.status?.conditions, said, generation)
  if (conditions !== undefined) {
    const patch = {
      metadata: { resourceVersion },
      status: { observedGeneration: generation, conditions },
    }
    const written = await world.writer.patchStatus<ServiceVIPBinding>(
      SERVICE_VIP_BINDINGS,
      whereOf(current),
      patch,
    )
    world.followed.bindings.learn(written)
  }
  return 'seen'
}

/** Puts the binding into its node's table and says how that went. */
function register(world: World, binding: ServiceVIPBinding): Said {
  const { name, uid, generation } = binding.metadata
  const target = targetOf(world, binding)
  if ('problem' in target) {
    return { type: 'Bound', status: 'False', reason: 'BindFailed', message: target.problem }
  }
  const before = world.registered.get(name)
  // An edited binding leaves its old rows where they are (*backends* dialect).
  if (before !== undefined && world.dialect === 'selector') forget(world, before)
  const { vpc, vip, backend } = target
  const holder = world.table.register(binding, vpc, vip, backend)
  if (holder !== undefined) {
    const message = `row is held by ServiceVIPBinding ${holder}`
    return { type: 'Bound', status: 'False', reason: 'Conflict', message }
  }
  world.registered.set(name, { uid, generation, binding, vpc, vip, backend })
  const { vipAddress, port, egressKind } = binding.spec
  const message = `backend is reachable on VIP ${vipAddress}:${port} (${egressKind})`
  return { type: 'Bound', status: 'True', reason: 'Bound', message }
}

/** Which VPC's rows a binding means: it is found by the backend's address on the node. */
function targetOf(
  world: World,
  { spec }: ServiceVIPBinding,
): { vpc: string; vip: string; backend: string } | { problem: string } {
  const vip = canonical(spec.vipAddress)
  const backend = canonical(spec.backendAddress)
  if (vip === undefined) return { problem: `invalid vipAddress ${spec.vipAddress}` }
  if (backend === undefined) return { problem: `invalid backendAddress ${spec.backendAddress}` }
  if (spec.backendPort === undefined) return { problem: 'backendPort is required' }
  const node = spec.targetRef.name
  const [vpc, ...others] = world.inventory.vpcsOn(node, backend)
  if (vpc === undefined) return { problem: `nothing on node ${node} has the address ${backend}` }
  if (others.length > 0) return { problem: `more than one VPC on node ${node} has ${backend}` }
  return { vpc, vip, backend }
}

/**
 * The rows are found by the backend's address, for which its attachment has to be there still
 * (*backends* dialect): where it isn't, the binding stays until it is back.
 */
function planUnbind(world: World, binding: ServiceVIPBinding): Action | undefined {
  const { name, finalizers = [], generation } = binding.metadata
  if (!finalizers.includes(BINDING_FINALIZER)) return undefined
  const target = targetOf(world, binding)
  if ('problem' in target && world.dialect === 'backends') {
    world.stuckBindings.set(name, generation)
    return undefined
  }
  return {
    step: 'teardown',
    subjects: world.subjectsOfVip(binding.spec.vipAddress),
    async run() {
      const known = world.registered.get(name)
      if (!('problem' in target) && world.dialect === 'backends') {
        world.table.unregister(binding, target.vpc, target.vip, target.backend)
      } else if (known !== undefined) {
        forget(world, known)
      }
      world.registered.delete(name)
      const rest = finalizers.filter((one) => one !== BINDING_FINALIZER)
      await setFinalizers(world, binding, rest)
      // The row may be what another one waits for.
      world.retryBindings()
      return 'unseen'
    },
  }
}

function forget(world: World, { binding, vpc, vip, backend }: Registration): void {
  world.table.unregister(binding, vpc, vip, backend)
}

function setFinalizers(
  world: World,
  binding: ServiceVIPBinding,
  finalizers: string[],
): Promise<ServiceVIPBinding> {
  const { resourceVersion } = binding.metadata
  return world.writer.patch<ServiceVIPBinding>(SERVICE_VIP_BINDINGS, whereOf(binding), {
    metadata: { resourceVersion, finalizers },
  })
}

function whereOf(binding: ServiceVIPBinding): { name: string; namespace: string | undefined } {
  const { name, namespace } = binding.metadata
  return { name, namespace }
}
