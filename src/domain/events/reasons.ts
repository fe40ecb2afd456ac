/** Every reason that an event in the log may give, each with one line for people. The list is closed. */
export const EVENT_REASONS = {
  LoadBalancerCreated: 'A load balancer was created.',
  LoadBalancerUpdated: 'What is asked of a load balancer was changed.',
  BackendsChanged: 'Backends were added, removed or changed.',
  LoadBalancerDeletionRequested: 'The deletion of a load balancer was asked for.',
  LoadBalancerDeleted:
    'A load balancer is gone from everywhere; the event shows it as it was last.',
  LoadBalancerSettled:
    'The newest generation of a load balancer is in effect everywhere it should be.',
  LoadBalancerStatusChanged: 'The status of a load balancer changed by itself.',
  LoadBalancerRestored:
    'Clusters carried a newer state of a load balancer than the database, which was restored from a backup; it is as in the database again.',
  BackendHealthy: 'The health check of backends passes.',
  BackendUnhealthy: 'The health check of backends fails.',
  BackendHealthUnknown: 'Whether backends are healthy is not known at the moment.',
  BackendNotChecked: 'The health of backends is not checked any more.',
  IPv4ReservationCreated: 'An IPv4 address was reserved.',
  IPv4ReservationUpdated: 'A reservation was changed.',
  IPv4ReservationBound: 'A reservation was bound to a load balancer.',
  IPv4ReservationUnbound: 'A reservation was unbound from a load balancer.',
  IPv4ReservationMoved: 'A reservation was moved from one load balancer to another.',
  IPv4ReservationStateChanged: 'Whether a reservation is served changed by itself.',
  IPv4ReservationDeleted: 'A reservation was given up; its address is another’s after a while.',
} as const satisfies Record<string, string>

/** One of the closed list of reasons of events. */
export type EventReason = keyof typeof EVENT_REASONS
