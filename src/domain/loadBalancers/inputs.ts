/** What callers send, as the scalars leave it: a leaf may be an `InvalidValue`. Ids are UUIDs, or whatever else was given. */
import type { BackendAdminState, SessionAffinity } from '../../rules/wanted.ts'
import type { Checked } from '../input.ts'
import type { Label } from '../records.ts'

type Optional<T> = T | null | undefined

/** Every change may be asked for its plan instead. */
export type MayOnlyPlan = { validateOnly?: boolean }

export type ProtocolInput = {
  tcp?: Optional<{ port: Checked<number> }>
  udp?: Optional<{ port: Checked<number> }>
}

export type BackendInput = {
  address: Checked<string>
  name?: Optional<Checked<string>>
  adminState?: Optional<BackendAdminState>
}

export type HealthProbeInput = {
  tcp?: Optional<{ port?: Optional<Checked<number>> }>
  http?: Optional<{
    port?: Optional<Checked<number>>
    scheme?: Optional<'HTTP' | 'HTTPS'>
    host?: Optional<string>
    path?: Optional<string>
    expectedStatuses?: Optional<{ from: number; to: number }[]>
    verifyCertificate?: boolean
  }>
}

export type HealthCheckInput = {
  enabled?: Optional<boolean>
  probe?: Optional<HealthProbeInput>
  intervalSeconds?: Optional<number>
  timeoutSeconds?: Optional<number>
  rise?: Optional<number>
  fall?: Optional<number>
  minimumHealthyPercent?: Optional<number>
}

export type CreateLoadBalancerInput = {
  name: Checked<string>
  displayName?: Optional<string>
  description?: Optional<string>
  labels?: Optional<Label[]>
  vpc: string
  region: string
  protocol: ProtocolInput
  sessionAffinity?: Optional<SessionAffinity>
  backends?: Optional<BackendInput[]>
  healthCheck?: Optional<HealthCheckInput>
  ipv4Reservations?: Optional<string[]>
  deletionProtection?: boolean
  idempotencyKey?: Optional<string>
} & MayOnlyPlan

export type LoadBalancerField =
  | 'DISPLAY_NAME'
  | 'DESCRIPTION'
  | 'LABELS'
  | 'SESSION_AFFINITY'
  | 'HEALTH_CHECK'
  | 'DELETION_PROTECTION'

export type UpdateLoadBalancerInput = {
  id: string
  name?: Optional<Checked<string>>
  displayName?: Optional<string>
  description?: Optional<string>
  labels?: Optional<Label[]>
  protocol?: Optional<ProtocolInput>
  sessionAffinity?: Optional<SessionAffinity>
  healthCheck?: Optional<HealthCheckInput>
  deletionProtection?: Optional<boolean>
  reset?: Optional<LoadBalancerField[]>
  expectedGeneration?: Optional<number>
} & MayOnlyPlan

export type DeleteLoadBalancerInput = {
  id: string
  expectedGeneration?: Optional<number>
} & MayOnlyPlan

export type AddBackendsInput = {
  loadBalancer: string
  backends: BackendInput[]
  expectedGeneration?: Optional<number>
} & MayOnlyPlan
export type SetBackendsInput = AddBackendsInput
export type RemoveBackendsInput = {
  loadBalancer: string
  addresses: Checked<string>[]
  expectedGeneration?: Optional<number>
} & MayOnlyPlan
export type UpdateBackendsInput = {
  loadBalancer: string
  backends: {
    address: Checked<string>
    name?: Optional<Checked<string>>
    resetName?: boolean
    adminState?: Optional<BackendAdminState>
  }[]
  expectedGeneration?: Optional<number>
} & MayOnlyPlan
