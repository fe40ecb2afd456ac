import { impactOf } from '../../maglev/impact.ts'
import { TABLE_SIZE } from '../../maglev/table.ts'
import type { StoredLoadBalancer } from '../loadBalancers/stored.ts'
import { backendObstacles } from './backendObstacles.ts'
import { flowImpacts, tablesOf } from './flows.ts'
import type { Warning } from './plan.ts'
import type { Compared, Scene } from './scene.ts'
import { vipWarnings } from './vipWarnings.ts'

/** What a person should know before they make a change: only what the change itself brings about. */
export function warningsOf(compared: Compared): Warning[] {
  const { before, after, about } = compared
  return [
    ...about.loadBalancers.flatMap((id) => {
      const was = before.loadBalancers.get(id)
      const is = after.loadBalancers.get(id)
      const pairs = tablesOf(before, after, id)
      const served = pairs.some((pair) => pair.before !== null)
      if (is === undefined || is.deletingSince !== null) {
        return served && was?.deletingSince === null ? [serviceEnds] : []
      }
      return [
        ...(was === undefined ? [] : movingFlows(was, is, compared)),
        ...(served ? places(pairs) : []),
        ...backendObstacles(was, is, compared),
        ...noBackends(was, is),
        ...affinity(was, is, after),
      ]
    }),
    ...vipWarnings(compared),
    ...others(compared),
  ]
}

const serviceEnds: Warning = {
  code: 'SERVICE_ENDS',
  message: 'Its addresses are no longer served, and all connections are cut.',
  path: [],
}

function movingFlows(
  was: StoredLoadBalancer,
  is: StoredLoadBalancer,
  { before, after }: Compared,
): Warning[] {
  const staying = tablesOf(before, after, is.id).filter(
    (pair) => pair.before !== null && pair.after !== null,
  )
  if (staying.length === 0) return []
  const warnings: Warning[] = []
  if (was.port !== is.port) {
    warnings.push({
      code: 'PORT_CHANGE_MOVES_ALL_FLOWS',
      message: `Another port changes every slot of the table: nobody is served at port ${was.port} any more, and a client is likely to be sent to another backend at port ${is.port}.`,
      path: ['protocol'],
    })
  }
  if (was.protocol !== is.protocol) {
    warnings.push({
      code: 'PROTOCOL_CHANGE_CUTS_ALL_FLOWS',
      message: `${was.protocol} is no longer served, so all connections are cut.`,
      path: ['protocol'],
    })
  }
  if (was.sessionAffinity !== is.sessionAffinity && keptSomewhere(after)) {
    warnings.push({
      code: 'AFFINITY_CHANGE_MOVES_FLOWS',
      message:
        'Clients are told apart by other things than before, so most connections go to another backend, and open ones among them are cut.',
      path: ['sessionAffinity'],
    })
  }
  const most = Math.max(...staying.map((pair) => impactOf(pair.before, pair.after).moved))
  if (most > 0 && was.port === is.port) {
    warnings.push({
      code: 'FLOWS_MOVE',
      message: `${percent(most / TABLE_SIZE)} of all clients' connections go to another backend. Open ones among them are cut: no table of connections is kept.`,
      path: [],
    })
  }
  return warnings
}

const percent = (share: number): string => `${(100 * share).toFixed(1)} %`

const keptSomewhere = ({ clusters }: Scene): boolean =>
  clusters.some(({ capabilities }) => capabilities.sessionAffinity)

/** Clusters are nothing that tenants know of; that there is more than one place shows in their traffic. */
function places(pairs: ReturnType<typeof tablesOf>): Warning[] {
  const warnings: Warning[] = []
  if (pairs.some(({ before }) => before === null)) {
    warnings.push({
      code: 'SERVED_IN_MORE_PLACES',
      message:
        'The region begins to serve it in one more place. The network decides which clients come there; their open connections are cut.',
      path: [],
    })
  }
  if (pairs.some(({ after }) => after === null)) {
    const all = pairs.every(({ after }) => after === null)
    warnings.push(
      all
        ? { ...serviceEnds, message: 'Nothing is left that serves, and all connections are cut.' }
        : {
            code: 'SERVED_IN_FEWER_PLACES',
            message:
              'One of the places in the region that serve it no longer does. Its clients go to the others, and their open connections are cut.',
            path: [],
          },
    )
  }
  return warnings
}

function noBackends(was: StoredLoadBalancer | undefined, is: StoredLoadBalancer): Warning[] {
  const enabled = (one: StoredLoadBalancer) =>
    one.backends.some(({ adminState }) => adminState === 'ENABLED')
  if (enabled(is) || (was !== undefined && !enabled(was))) return []
  return [
    {
      code: 'NO_BACKENDS',
      message: 'No backend is enabled, so there is nothing to send connections to.',
      path: ['backends'],
    },
  ]
}

function affinity(
  was: StoredLoadBalancer | undefined,
  { id, sessionAffinity }: StoredLoadBalancer,
  { clusters }: Scene,
): Warning[] {
  if (sessionAffinity === 'NONE' || was?.sessionAffinity === sessionAffinity) return []
  const placed = clusters.filter(({ placements }) => placements.has(id))
  const relevant = placed.length > 0 ? placed : clusters
  if (relevant.every(({ capabilities }) => capabilities.sessionAffinity)) return []
  const nowhere = relevant.every(({ capabilities }) => !capabilities.sessionAffinity)
  return [
    {
      code: 'AFFINITY_NOT_SUPPORTED',
      message: `The region ${nowhere ? 'does not keep' : 'keeps only in part'} this session affinity yet: connections are spread without it.`,
      path: ['sessionAffinity'],
    },
  ]
}

/** Load balancers that gain or lose a place of the data plane by the change of this one. */
function others({ before, after, about }: Compared): Warning[] {
  const projects = new Set(
    [before, after].flatMap(({ loadBalancers }) =>
      about.loadBalancers.flatMap((id) => loadBalancers.get(id)?.project ?? []),
    ),
  )
  // A VPC may have had another owner before; what is theirs is not told.
  return [...after.loadBalancers.values()]
    .filter(({ id, project }) => !about.loadBalancers.includes(id) && projects.has(project))
    .flatMap(({ id, name }) => {
      const keys = (table: { keys: readonly string[] } | null) => table?.keys.join()
      const touched = tablesOf(before, after, id).some(
        (pair) => keys(pair.before) !== keys(pair.after),
      )
      if (!touched) return []
      const most = Math.max(0, ...flowImpacts(before, after, [id]).map((one) => one.moved))
      return [
        {
          code: 'OTHER_LOAD_BALANCER_CHANGES',
          message: `Load balancer "${name}" shares a machine, protocol and port with this one, so its table of backends changes too: ${most} of its slots move.`,
          path: [],
        },
      ]
    })
}
