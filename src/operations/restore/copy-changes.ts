import { asc, count, eq, isNull } from "drizzle-orm"
import { now } from "../../core/time"
import { noteLostEvents } from "../../events/lost-events"
import {
  apiKeys,
  consoleSessions,
  deviceCodes,
  mfaChallenges,
  passwordResets,
  refreshTokens,
} from "../../identity/tables"
import { heldCount, holdOpenWork } from "../../jobs/holds"
import { nodes } from "../../jobs/tables"
import { RESTORE_HOLD } from "../../jobs/work-item"
import * as instanceValues from "../../store/instance-values"
import type { Reader, Store, Tx } from "../../store/store"
import { notePosted } from "../../subscribers/postings"
import { invitations } from "../../tenancy/tables"
import { noneHeld } from "../../webhooks/endpoint-counts"
import { endCopiedBackup } from "../backup/backup-job"
import { INSTANCE_ID } from "../folder-owner"
import { heldTables } from "../start-held"
import { isActiveKey, type UnknownSince, unknownSince } from "./unknown-since"

/** Names the Postgres server in which positions of events count: another one counts its own. */
const CLUSTER = "postgres_cluster"
const SETUP_TOKEN = "setup_token"

/** The most that a report lists; it counts all of them. */
const MOST_KEYS = 1000

/** What ended with the restore: nobody is let in by what was issued to the original. */
interface EndedAccess {
  sessions: number
  refresh_tokens: number
  /** Codes of devices and of second factors that were under way. */
  codes: number
  /** Links of password resets and of invitations. */
  links: number
}

/** An API key that works in the restored instance. */
interface ActiveKey {
  id: string
  project_id: string
  name: string
  last4: string
  last_used_at: string | null
}

export interface ChangedCopy {
  /** What waits now, by table. */
  held: Record<string, number>
  ended: EndedAccess
  revoked_keys: number
  active_keys: number
  /** The first 1,000. */
  keys: ActiveKey[]
  unknown: UnknownSince
}

interface ChangeOptions {
  runs_on: readonly string[]
  revoke_keys: boolean
  onHeld?: (held: number) => void
}

/**
 * Makes a copy of a database fit to be started: its open work is held, and what was issued to people ends.
 * So does the backup that the copy was made for.
 * Nothing may run on it. It may be called again.
 */
export async function changeCopy(store: Store, options: ChangeOptions): Promise<ChangedCopy> {
  const tables = heldTables(options.runs_on)
  await holdOpenWork(store, tables, options.onHeld)
  const done = await store.tx(async (tx) => {
    await noneHeld(tx)
    await tx.delete(nodes)
    await instanceValues.remove(tx, CLUSTER)
    await instanceValues.remove(tx, SETUP_TOKEN)
    await instanceValues.remove(tx, INSTANCE_ID)
    await noteLostEvents(tx)
    await endCopiedBackup(tx)
    if (!tx.isAlone) await notePosted(tx, undefined) // it keeps no lists from here on
    const ended = await endAccess(tx)
    return { ended, revoked_keys: options.revoke_keys ? await revokeKeys(tx) : 0 }
  })
  const held: Record<string, number> = {}
  for (const { rows } of tables) {
    const [counted] = await heldCount(store.read, rows, RESTORE_HOLD)
    held[rows.name] = counted?.n ?? 0
  }
  const unknown = await unknownSince(store.read)
  return { held, ...done, ...(await activeKeys(store.read)), unknown }
}

/** On Postgres the copied events got new positions: readers of lost ones go on behind these. */
export const lostEventsAt = (kept: string, position: number): string => {
  const gaps = JSON.parse(kept) as { position: number }[]
  return JSON.stringify(gaps.map((gap) => ({ ...gap, position })))
}

async function endAccess(tx: Tx): Promise<EndedAccess> {
  const revoked_at = now()
  const open = isNull(consoleSessions.revoked_at)
  const sessions = await tx.update(consoleSessions).set({ revoked_at }).where(open).returning()
  const tokens = await tx.delete(refreshTokens).returning()
  const device_codes = await tx.delete(deviceCodes).returning()
  const challenges = await tx.delete(mfaChallenges).returning()
  const resets = await tx.delete(passwordResets).returning()
  const invited = await tx
    .update(invitations)
    .set({ status: "revoked" })
    .where(eq(invitations.status, "pending"))
    .returning()
  return {
    sessions: sessions.length,
    refresh_tokens: tokens.length,
    codes: device_codes.length + challenges.length,
    links: resets.length + invited.length,
  }
}

async function revokeKeys(tx: Tx): Promise<number> {
  const revoked = tx.update(apiKeys).set({ revoked_at: now() }).where(isActiveKey())
  return (await revoked.returning({ id: apiKeys.id })).length
}

async function activeKeys(db: Reader): Promise<Pick<ChangedCopy, "active_keys" | "keys">> {
  const { id, project_id, name, last4, last_used_at } = apiKeys
  const some = db.select({ id, project_id, name, last4, last_used_at }).from(apiKeys)
  const keys = await some.where(isActiveKey()).orderBy(asc(id)).limit(MOST_KEYS)
  const [all] = await db.select({ n: count() }).from(apiKeys).where(isActiveKey())
  return { active_keys: Number(all?.n ?? 0), keys }
}
