import type { BackendAdminState } from '../rules/wanted.ts'
import type { HealthCheckSettings, HealthState } from './records.ts'

export type Health = { healthState: HealthState; healthReason: string; healthMessage: string }

/** The health of a backend that was just added, or whose check was just turned on or off. */
export function firstHealth(
  healthCheck: Pick<HealthCheckSettings, 'enabled'>,
  adminState: BackendAdminState,
): Health {
  if (!healthCheck.enabled) {
    return {
      healthState: 'NOT_CHECKED',
      healthReason: 'NoHealthCheck',
      healthMessage: 'The load balancer has no health check.',
    }
  }
  if (adminState === 'DISABLED') {
    return {
      healthState: 'NOT_CHECKED',
      healthReason: 'Disabled',
      healthMessage: 'A disabled backend is not probed.',
    }
  }
  return {
    healthState: 'UNKNOWN',
    healthReason: 'NotProbedYet',
    healthMessage: 'The first probes have not come to a result yet.',
  }
}
