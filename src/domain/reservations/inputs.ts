/** What callers send about reservations, as the scalars leave it; see loadBalancers/inputs.ts. */
import type { Checked } from '../input.ts'
import type { MayOnlyPlan } from '../loadBalancers/inputs.ts'
import type { Label } from '../records.ts'

type Optional<T> = T | null | undefined

export type CreateIPv4ReservationInput = {
  name: Checked<string>
  displayName?: Optional<string>
  description?: Optional<string>
  labels?: Optional<Label[]>
  region: string
  deletionProtection?: boolean
  idempotencyKey?: Optional<string>
} & MayOnlyPlan
export type IPv4ReservationField = 'DISPLAY_NAME' | 'DESCRIPTION' | 'LABELS' | 'DELETION_PROTECTION'
export type UpdateIPv4ReservationInput = {
  id: string
  name?: Optional<Checked<string>>
  displayName?: Optional<string>
  description?: Optional<string>
  labels?: Optional<Label[]>
  deletionProtection?: Optional<boolean>
  reset?: Optional<IPv4ReservationField[]>
  expectedGeneration?: Optional<number>
} & MayOnlyPlan
export type DeleteIPv4ReservationInput = {
  id: string
  expectedGeneration?: Optional<number>
} & MayOnlyPlan
export type BindIPv4ReservationInput = {
  reservation: string
  loadBalancer: string
  expectedGeneration?: Optional<number>
} & MayOnlyPlan
export type MoveIPv4ReservationInput = {
  reservation: string
  from: string
  to: string
  expectedGeneration?: Optional<number>
  idempotencyKey?: Optional<string>
  validateOnly?: boolean
}
export type UnbindIPv4ReservationInput = BindIPv4ReservationInput
