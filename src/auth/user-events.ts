import { emit, type NewEvent } from "../events/emit"
import type { Tx } from "../store/store"
import type { EndUserRow } from "./end-users"
import type { AuthEnvironment } from "./environments"

/** What an event tells beside the user; what does not apply is absent (contract 30, section 4). */
export interface UserEventFacts {
  provider?: string | undefined
  ip_address?: string | null | undefined
  session_id?: string | undefined
  mfa_method?: string | undefined
  organization_id?: string | undefined
  actor_id?: string | null | undefined
  reason?: string | undefined
}

export type UserEventType =
  | "user.created"
  | "user.login"
  | "user.logout"
  | "user.password_changed"
  | "user.password_reset_requested"
  | "user.email_verified"
  | "user.phone_verified"
  | "user.mfa_enabled"
  | "user.mfa_disabled"
  | "user.deleted"
  | "user.session_revoked"
  | "user.impersonated"

/** Records an event of a user, in the transaction that makes it true. */
export const emitUser = (
  tx: Tx,
  environment: AuthEnvironment,
  user: Pick<EndUserRow, "id" | "email">,
  type: UserEventType,
  facts: UserEventFacts = {},
): Promise<void> => emit(tx, userEvent(environment, user, type, facts))

export function userEvent(
  { project_id, application, name }: AuthEnvironment,
  { id, email }: Pick<EndUserRow, "id" | "email">,
  type: UserEventType,
  facts: UserEventFacts,
): NewEvent {
  const known = Object.entries(facts).filter(([, value]) => value !== undefined && value !== null)
  const metadata = { ...Object.fromEntries(known), environment: name }
  return {
    account_id: application.account_id,
    project_id,
    subject_id: id,
    type,
    data: { application_id: application.id, user: { id, email }, metadata },
  }
}
