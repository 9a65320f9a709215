import type * as audit from "../audit-log/audit-log"
import { fail } from "../core/errors"
import { isoFrom, millis } from "../core/time"
import { accounts } from "../identity/tables"
import { rowForUpdate } from "../store/rows"
import type { Tx } from "../store/store"
import { type AccountRow, find } from "../tenancy/accounts"
import { INSTANCE_SLUG } from "../tenancy/projects"
import { changeStatus, standingOf } from "./evaluate"
import { addUp, hourOf, hoursOf, NONE } from "./hour-counts"
import { BLANK } from "./sending-status"

/** Stops all sending of an account. Throws 404, and 409 where it is frozen already. */
export async function freeze(tx: Tx, account_id: string, reason: string, by: audit.By) {
  const before = await findForUpdate(tx, account_id)
  if (before.sending_status === "frozen") {
    const details = { reason: "frozen", id: account_id }
    fail("conflict", "This account is frozen already.", details)
  }
  const { reputation } = standingOf(before)
  const changes = { cause: "operator", rejected_share: 1, below_since: null, warned: null } as const
  const frozen = { ...reputation, ...changes, changed_at: isoFrom(millis()) }
  return changeStatus(tx, before, "frozen", { reputation: frozen, reason, by })
}

/**
 * Lets a frozen account send again. Its window begins now: what was counted before counts no more.
 * Throws 404, and 409 where it is not frozen. The audit log keeps the reason.
 */
export async function unfreeze(tx: Tx, account_id: string, why: string, by: audit.By) {
  const before = await findForUpdate(tx, account_id)
  if (before.sending_status !== "frozen") {
    const text = `This account is ${before.sending_status}, not frozen. A throttled account becomes active by itself.`
    fail("conflict", text, { reason: "not_frozen", id: account_id })
  }
  const at_ms = millis()
  const base = { ...NONE }
  for (const hour of await hoursOf(tx, account_id, hourOf(at_ms))) addUp(base, hour)
  const window_start = isoFrom(at_ms)
  const reputation = { ...BLANK, window_start, base, changed_at: window_start }
  return changeStatus(tx, before, "active", { reputation, reason: null, why, by })
}

/** Not the account of the instance itself, which no route names. */
async function findForUpdate(tx: Tx, account_id: string): Promise<AccountRow> {
  const account = await rowForUpdate(tx, accounts, account_id)
  const is_hidden = account === undefined || account.slug === INSTANCE_SLUG
  return is_hidden ? find(tx, "") : account
}
