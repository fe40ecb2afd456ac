/**
 * Every reason that a condition or a finding may give, each with one line for people. The list is
 * closed: what isn't here can't be said, and the documentation is made from it.
 */
export const REASONS = {
  // Where a change stands.
  Stored: 'What was asked for was accepted and is kept.',
  VpcNotOwned:
    'The VPC does not belong to the project any more: what runs goes on, but changes are refused.',
  InEffect: 'Everything that was asked for is in effect.',
  Progressing: 'What was asked for last is on its way.',
  Withdrawing: 'It is no longer wanted here and is being removed.',
  Withdrawn: 'It is not wanted here, and nothing of it is left.',
  Deleting: 'The load balancer is being deleted.',

  // Addresses.
  Allocated: 'The load balancer has its addresses.',
  AddressPending: 'The load balancer has no address yet.',
  AddressHeldElsewhere:
    'The address was moved here, and the load balancer that had it before has not let go of it everywhere yet.',
  AddressFamilyNotServed: 'Addresses of this family are not served in this region yet.',

  // The rule in a cluster.
  Applied: 'The rule is in the cluster as it should be.',
  RuleEdited: 'Somebody else changed the rule in a cluster; it is being put right.',
  Accepted: 'The data plane accepted the rule.',
  NotAccepted: 'The data plane refused the rule.',
  InvalidRule: 'The data plane says that the rule is not valid.',
  LoadFailed: 'A gateway could not load the rule.',
  BackendsUnresolved: 'A gateway found none of the backends.',
  BindFailed: 'The node of a backend could not be set up for the virtual address.',
  EngineDegraded:
    'A gateway reports trouble of its own, so whether it carries this load balancer is not known.',
  GatewayNotReady: 'A gateway is not ready, so whether it carries this load balancer is not known.',
  ClusterReady: 'Nothing is wrong with the cluster as a whole.',
  NoGateway: 'No gateway stands where a backend lives, so no traffic can reach it.',
  TeardownStuck: 'Something that was removed has been waiting for the data plane to let go of it.',
  SchemaMissing: 'The data plane is not installed, or its interface is not one that is known.',
  NamespaceMissing:
    'The namespace in which the data plane looks for rules is not there, or is being removed.',
  RightsMissing:
    'The cluster does not let the worker do all that it must, for want of rights or of valid credentials.',
  ApplyFailed: 'The cluster refused what was written to it.',
  ClusterFull: 'The gateways have no room for another virtual address.',
  ClusterUnreachable:
    'A cluster does not answer; what it serves is not known, and it may well go on serving.',
  ClusterCordoned: 'The address lives where no new backends are taken at the moment.',
  InventoryComplete: 'What lives in the cluster is known as it is now.',
  InventoryStale: 'What lives in the cluster can not be read; what was known last is kept.',
  InventoryDoubted:
    'Too much vanished from the cluster at once to be believed; what was known last is kept until it shows up again, a second look confirms it, or an operator does.',
  VpcsUnlabelled:
    'No VPC of the cluster has a label that says whose it is: changes about its VPCs are refused until they have, and what runs stays.',
  StoreBehind:
    'The cluster carries a newer state than the database, which was restored from an older backup; nothing is written until an operator decides.',

  // A cluster, as operators see it.
  ClusterAnswers: 'The cluster answers.',
  NoWorker: 'No worker serves the cluster at the moment, so nothing is known of it.',
  Swept: 'Every rule of ours in the cluster has an owner.',
  SweepPending: 'The cluster has not been looked through yet.',
  UnknownOwners:
    'Rules carry the mark of this store, but their owners were never heard of; they wait for an operator.',

  // Routes.
  Advertised: 'The virtual address is announced to the network.',
  PartlyAdvertised: 'Some, but not all, of the gateways announce the virtual address.',
  NotAdvertised: 'The virtual address is not announced to the network.',
  Served: 'Addresses of this family are served.',
  NotProbed: 'Nobody probes it from outside; derived from what is announced and healthy.',
  Probed: 'A connection from outside came through.',
  ProbeFailed: 'Connections from outside do not come through.',
  VantagesDisagree:
    'Connections come through from some of the places outside that try, and not from others.',

  // Backends.
  Resolved: 'The address is known in the VPC.',
  AddressUnknown: 'The address is not known in the VPC in this region.',
  NoBackends: 'No backend is enabled here.',
  NodeConflict:
    'An older backend on the same machine serves the same protocol and port, and only one can.',
  AttachmentShared:
    'The interface also carries other addresses that should not serve, and it serves with all or none.',
  BackendsClaimed: 'An older load balancer already uses the same address, protocol and port.',
  Standby: 'The backend is on standby: known, but sent no connections.',
  Disabled: 'The backend is disabled.',
  Unhealthy: 'The health check fails, so no new connections are sent to it.',
  NotServing: 'No backend is set up to receive connections yet.',

  // Health.
  Healthy: 'The health check passes.',
  SomeUnhealthy: 'The health check of some backends fails.',
  AllUnhealthy: 'The health check of every backend fails.',
  FailOpen: 'Too few backends are healthy, so all of them are sent connections.',
  NotProbedYet: 'The health check has not come to a result yet.',
  ProberDistrusted:
    'Every probe failed at once in many load balancers, so the prober is not believed.',
  Flapping: 'The health check changed its mind too often, so the backend is held out for a while.',
  NoHealthCheck: 'The load balancer has no health check.',
  NoProber: 'Health cannot be checked in this region: nobody stands where it could be done.',

  // Affinity.
  Honoured: 'Connections are spread with the affinity that was asked for.',
  AffinityNotSupported:
    'The data plane cannot keep the affinity that was asked for; connections are spread without it.',

  // The whole.
  Serving: 'Connections to the load balancer reach its backends.',
} as const satisfies Record<string, string>

/** One of the closed list of reasons. */
export type Reason = keyof typeof REASONS

/** Whether a text from outside is one of the listed reasons. */
export const isReason = (text: string): text is Reason => Object.hasOwn(REASONS, text)
