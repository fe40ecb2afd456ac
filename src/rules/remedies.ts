import type { Reason } from './reasons.ts'

const WAIT = 'Wait: it comes by itself, usually within seconds. Nothing has to be done.'
const OPERATORS =
  "Nothing of yours is wrong and nothing has to be changed; the platform's operators see it. Tell them if it lasts."
const ELSEWHERE =
  "Nothing of yours is wrong; the platform's operators see it. Backends that live elsewhere in the region go on serving: add some if all of yours are affected."
const NOT_NEEDED = null

/**
 * What would mend what a reason says, in words that a tenant can act on; null where nothing is to be
 * mended. Every reason has its line here, so that a new one is thought about.
 */
export const REMEDIES: Readonly<Record<Reason, string | null>> = {
  Stored: NOT_NEEDED,
  VpcNotOwned:
    "Have the VPC given back to the project: changes are refused until then. What runs isn't touched.",
  InEffect: NOT_NEEDED,
  Progressing: WAIT,
  Withdrawing: WAIT,
  Withdrawn: NOT_NEEDED,
  Deleting: 'Nothing: it is gone once every place that served it has let go of its addresses.',

  Allocated: NOT_NEEDED,
  AddressPending: 'Wait, or create it again: a load balancer gets its address when it is created.',
  AddressHeldElsewhere:
    'Wait until the load balancer that had the address has let go of it; look at that one if it takes longer than a minute.',
  AddressFamilyNotServed:
    "Use the load balancer's IPv6 address (and IPv6 backends), or a region whose addressFamilies list IPV4. The reservation stays yours.",

  Applied: NOT_NEEDED,
  RuleEdited: WAIT,
  Accepted: NOT_NEEDED,
  NotAccepted: OPERATORS,
  InvalidRule: OPERATORS,
  LoadFailed: OPERATORS,
  BackendsUnresolved:
    'Look whether the machines behind the backends are up and still attached to the VPC.',
  BindFailed: ELSEWHERE,
  EngineDegraded: OPERATORS,
  GatewayNotReady: OPERATORS,
  ClusterReady: NOT_NEEDED,
  NoGateway: ELSEWHERE,
  TeardownStuck: OPERATORS,
  SchemaMissing: ELSEWHERE,
  NamespaceMissing: ELSEWHERE,
  RightsMissing: ELSEWHERE,
  ApplyFailed: ELSEWHERE,
  ClusterFull: ELSEWHERE,
  ClusterUnreachable: ELSEWHERE,
  ClusterCordoned:
    'Add backends that live elsewhere in the region, or wait until new ones are taken here again.',
  InventoryComplete: NOT_NEEDED,
  InventoryStale: OPERATORS,
  InventoryDoubted: OPERATORS,
  VpcsUnlabelled: OPERATORS,
  StoreBehind: OPERATORS,

  ClusterAnswers: NOT_NEEDED,
  NoWorker: OPERATORS,
  Swept: NOT_NEEDED,
  SweepPending: WAIT,
  UnknownOwners: OPERATORS,

  Advertised: NOT_NEEDED,
  PartlyAdvertised: OPERATORS,
  NotAdvertised:
    "Wait: announcing takes some seconds. If it lasts, tell the platform's operators; nothing of yours is wrong.",
  Served: NOT_NEEDED,
  NotProbed: NOT_NEEDED,
  Probed: NOT_NEEDED,
  ProbeFailed:
    "Try it yourself from outside, and look whether the backends answer clients from there; tell the platform's operators if they do.",
  VantagesDisagree: OPERATORS,

  Resolved: NOT_NEEDED,
  AddressUnknown:
    'Add an address that lives in the VPC in this region (vpc { endpoints } lists them), or start the machine that has it.',
  NoBackends: 'Add a backend, or set the adminState of one to ENABLED.',
  NodeConflict:
    'Use a backend on another machine, another port, or remove the older backend: one machine serves a port once for a VPC.',
  AttachmentShared:
    'Make the other addresses of the interface backends too, or give this backend an interface of its own.',
  BackendsClaimed:
    'Remove the backend from the older load balancer, or use another port for this one.',
  Standby: 'Set its adminState to ENABLED.',
  Disabled: 'Set its adminState to ENABLED.',
  Unhealthy: 'Look at the service behind the backend, or at the settings of the health check.',
  NotServing: WAIT,

  Healthy: NOT_NEEDED,
  SomeUnhealthy:
    'Look at the services behind the backends that are named, or at the settings of the health check.',
  AllUnhealthy:
    'Look whether the service runs and listens on the port, and whether the health check asks the right thing.',
  FailOpen:
    'Look whether the services run and listen on the port, and whether the health check asks the right thing: until enough are healthy all are sent connections.',
  NotProbedYet: 'Wait for the first probes; backends serve until then.',
  ProberDistrusted: OPERATORS,
  Flapping:
    'Look why the service comes and goes; a larger timeout, fall or rise of the health check makes it calmer.',
  NoHealthCheck: NOT_NEEDED,
  NoProber: NOT_NEEDED,

  Honoured: NOT_NEEDED,
  AffinityNotSupported:
    'Set sessionAffinity to NONE, or use a region whose sessionAffinities list the one you need. Connections are carried either way.',

  Serving: NOT_NEEDED,
}
