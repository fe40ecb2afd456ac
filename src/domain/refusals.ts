/**
 * Refusals: what a caller can act on, as data. One class each; the graph maps each to its type once.
 * Anything thrown instead is a bug.
 */
import type { AddressFamily } from '../rules/wanted.ts'
import type { ValidationIssue } from './input.ts'
import type { RefusalCode } from './refusalCodes.ts'

type Told = {
  message: string
  /** Leads to the argument it is about, from the input's root. */
  path?: string[]
  /** What to do about it. */
  hint?: string | null
  retryable?: boolean
}

export abstract class Refusal {
  readonly code: RefusalCode
  readonly message: string
  readonly path: string[]
  readonly hint: string | null
  readonly retryable: boolean

  constructor(code: RefusalCode, told: Told) {
    this.code = code
    this.message = told.message
    this.path = told.path ?? []
    this.hint = told.hint ?? null
    this.retryable = told.retryable ?? false
  }
}

/** Any refusal without a type of its own, told by its code. */
export class Refused extends Refusal {}

export class ValidationFailed extends Refusal {
  readonly issues: ValidationIssue[]

  constructor(issues: ValidationIssue[]) {
    super('VALIDATION_FAILED', {
      message:
        issues.length === 1
          ? 'One value of the input is not valid.'
          : `${issues.length} values of the input are not valid.`,
      path: issues[0]?.path ?? [],
      hint: 'Mend every issue listed and send the change again; nothing was changed.',
    })
    this.issues = issues
  }
}

export class NotFound extends Refusal {
  readonly missingId: string | null

  constructor(told: Told & { missingId: string | null }) {
    super('NOT_FOUND', told)
    this.missingId = told.missingId
  }
}

export class NotReleased extends Refusal {
  readonly projectName: string

  constructor(projectName: string) {
    super('NOT_RELEASED', {
      message: `Load balancers are not open to project "${projectName}" yet.`,
      hint: 'Ask the platform to open it for your project; reading works already.',
    })
    this.projectName = projectName
  }
}

export class NameTaken extends Refusal {
  readonly takenName: string

  constructor(told: Told & { takenName: string }) {
    super('NAME_TAKEN', told)
    this.takenName = told.takenName
  }
}

export class GenerationConflict extends Refusal {
  readonly expectedGeneration: number
  readonly currentGeneration: number

  constructor(expectedGeneration: number, currentGeneration: number) {
    super('GENERATION_CONFLICT', {
      message: `It is at generation ${currentGeneration}, not ${expectedGeneration}: somebody changed it meanwhile.`,
      path: ['expectedGeneration'],
      hint: 'Read it again, decide again, and send the generation that you read.',
      retryable: true,
    })
    this.expectedGeneration = expectedGeneration
    this.currentGeneration = currentGeneration
  }
}

export class IdempotencyKeyReused extends Refusal {
  constructor() {
    super('IDEMPOTENCY_KEY_REUSED', {
      message: 'This idempotency key was used with another input within the last 24 hours.',
      path: ['idempotencyKey'],
      hint: 'Use a new key for a new object; repeat the same input to get the same object again.',
    })
  }
}

export class QuotaExceeded extends Refusal {
  readonly resource: string
  readonly limit: number
  readonly used: number

  constructor(told: Told & { resource: string; limit: number; used: number }) {
    super('QUOTA_EXCEEDED', told)
    this.resource = told.resource
    this.limit = told.limit
    this.used = told.used
  }
}

export class PoolExhausted extends Refusal {
  readonly regionCode: string | null
  readonly family: AddressFamily

  constructor(regionCode: string | null, family: AddressFamily) {
    super('POOL_EXHAUSTED', {
      message: `Region "${regionCode}" has no free ${family === 'IPV4' ? 'IPv4' : 'IPv6'} address left.`,
      hint: 'Try again later or use another region; the platform was not able to give an address.',
      retryable: true,
    })
    this.regionCode = regionCode
    this.family = family
  }
}

/** A pool would share addresses with another one. */
export class PoolOverlap extends Refusal {
  readonly poolName: string
  readonly prefix: string

  constructor(poolName: string, prefix: string) {
    super('POOL_OVERLAP', {
      message: `It shares addresses with pool "${poolName}" (${prefix}).`,
      path: ['prefix'],
      hint: 'An address belongs to one pool; take a prefix that is free.',
    })
    this.poolName = poolName
    this.prefix = prefix
  }
}

/** Somebody has addresses that the change would take out of the pool. `holders`: the first of them. */
export class PoolInUse extends Refusal {
  readonly holders: string[]

  constructor(holders: string[], path: string[]) {
    super('POOL_IN_USE', {
      message: `${holders.join(', ')} ${holders.length === 1 ? 'is' : 'are'} in use, or may still be carried by a cluster.`,
      path,
      hint: 'Nobody is moved: have what is named deleted first, or disable the pool and wait.',
      retryable: true,
    })
    this.holders = holders
  }
}

/** A cluster may still carry rules of ours. */
export class ClusterInUse extends Refusal {
  readonly rules: number

  constructor(name: string, rules: number) {
    super('CLUSTER_IN_USE', {
      message: `Cluster "${name}" is not drained yet: ${rules} ${rules === 1 ? 'rule' : 'rules'} may be left there.`,
      path: ['id'],
      hint: 'Wait until its state is DRAINED; blockedBy lists the load balancers that have backends nowhere else.',
      retryable: true,
    })
    this.rules = rules
  }
}

export class RegionMismatch extends Refusal {
  readonly expectedRegion: string | null
  readonly actualRegion: string | null

  constructor(told: Told & { expectedRegion: string | null; actualRegion: string | null }) {
    super('REGION_MISMATCH', told)
    this.expectedRegion = told.expectedRegion
    this.actualRegion = told.actualRegion
  }
}

export class BackendsOutsideRegion extends Refusal {
  readonly addresses: string[]

  constructor(addresses: string[], regionCode: string) {
    super('BACKENDS_OUTSIDE_REGION', {
      message: `${addresses.join(', ')} ${addresses.length === 1 ? 'lives' : 'live'} in another region than "${regionCode}".`,
      path: ['backends'],
      hint: 'A load balancer serves backends of its own region; make one in the other region for these.',
    })
    this.addresses = addresses
  }
}

export class ReservationInUse extends Refusal {
  readonly reservationId: string
  readonly loadBalancerId: string | null

  constructor(told: Told & { reservationId: string; loadBalancerId: string | null }) {
    super('RESERVATION_IN_USE', told)
    this.reservationId = told.reservationId
    this.loadBalancerId = told.loadBalancerId
  }
}

export class StaleHolder extends Refusal {
  readonly holderId: string | null

  constructor(holderId: string | null) {
    super('STALE_HOLDER', {
      message:
        holderId === null
          ? 'The reservation is not bound.'
          : 'Another load balancer holds the reservation by now.',
      path: ['loadBalancer'],
      hint: 'Read the reservation again; nothing was changed.',
    })
    this.holderId = holderId
  }
}

export class DeletionProtected extends Refusal {
  constructor() {
    super('DELETION_PROTECTED', {
      message: 'It is protected against deletion.',
      hint: 'Set deletionProtection to false first.',
    })
  }
}

export class BeingDeleted extends Refusal {
  /** When its deletion was asked for, RFC 3339. */
  readonly since: string

  constructor(since: string) {
    super('BEING_DELETED', {
      message: 'The load balancer is being deleted and takes no more changes.',
      hint: 'Create a new one; its name is free already.',
    })
    this.since = since
  }
}
