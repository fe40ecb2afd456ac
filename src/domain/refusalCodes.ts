/** Every code by which a mutation is refused, each with one line for people. The list is closed. */
export const REFUSAL_CODES = {
  VALIDATION_FAILED: 'Values of the input are not valid; `issues` lists every one.',
  NOT_FOUND: 'There is no such object, or you may not see it.',
  NOT_RELEASED: 'The project has not been opened for load balancers yet.',
  NAME_TAKEN: 'Another object has the name.',
  GENERATION_CONFLICT: 'Somebody changed the object since you read it.',
  IDEMPOTENCY_KEY_REUSED: 'The key was used with another input within 24 hours.',
  QUOTA_EXCEEDED: 'The project may have no more of these.',
  POOL_EXHAUSTED: 'The region has no free address of the family left.',
  REGION_MISMATCH: 'The objects are of different regions.',
  BACKENDS_OUTSIDE_REGION: 'Backends live in another region than the load balancer.',
  RESERVATION_IN_USE: 'The reservation is bound.',
  STALE_HOLDER: 'The reservation is not bound to the load balancer that was named.',
  DELETION_PROTECTED: 'The object is protected against deletion.',
  BEING_DELETED: 'The load balancer is being deleted and takes no more changes.',
  VPC_NOT_OWNED: 'The VPC does not belong to the project any more.',
  POOL_OVERLAP: 'For operators: the pool would share addresses with another one.',
  POOL_IN_USE: 'For operators: somebody has addresses that the change would take away.',
  CLUSTER_IN_USE: 'For operators: the cluster may still carry rules.',
  CLUSTER_NOT_DRAINED: 'For operators: the cluster has to be drained before.',
  CLUSTER_REACHABLE: 'For operators: the cluster answers, so it need not be forgotten.',
  CLUSTER_FORGOTTEN: 'For operators: the cluster was given up on.',
  QUOTA_FIXED: 'For operators: this quota is the same for all and cannot be set.',
} as const satisfies Record<string, string>

/** One of the closed list of refusals' codes. */
export type RefusalCode = keyof typeof REFUSAL_CODES
