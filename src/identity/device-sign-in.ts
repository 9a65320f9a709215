import { and, eq } from "drizzle-orm"
import { ApiError, fail } from "../core/errors"
import { newId } from "../core/ids"
import type { Secrets } from "../core/secrets"
import { isPast, millis, millisFrom, now, secondsFromNow } from "../core/time"
import { hashOfToken, newToken, randomLetters } from "../sign-in/tokens"
import { forUpdate } from "../store/columns"
import type { Reader, Store, Tx } from "../store/store"
import type { SessionClient, SessionReply, Sessions } from "./sessions"
import { consoleUsers, deviceCodes } from "./tables"
import { recordOwn, type UserRow } from "./users"

const LIFETIME_SECONDS = 600
const INTERVAL_SECONDS = 5
const SLOWER_SECONDS = 5

/** No vowels: no words. Nothing that looks like something else. */
const LETTERS = "BCDFGHJKLMNPQRSTVWXZ"
const HALF = 4

export type DeviceCodeRow = typeof deviceCodes.$inferSelect

export interface DeviceParts {
  store: Store
  secrets: Secrets
  sessions: Sessions
  link_base: () => string
}

/** RFC 8628, 3.2: what a program without a browser shows, and what it asks with. */
export async function begin(parts: DeviceParts, client_name: string, ip: string) {
  const device_code = newToken("device")
  const user_code = `${letters()}-${letters()}`
  const row: DeviceCodeRow = {
    id: newId(),
    device_code_hash: hashOfToken(device_code),
    user_code_hash: hashOfUserCode(parts.secrets, user_code),
    client_name,
    ip,
    status: "pending",
    user_id: null,
    interval_seconds: INTERVAL_SECONDS,
    last_polled_at: null,
    created_at: now(),
    expires_at: secondsFromNow(LIFETIME_SECONDS),
  }
  await parts.store.tx((tx) => tx.insert(deviceCodes).values(row))
  const times = { expires_in: LIFETIME_SECONDS, interval: INTERVAL_SECONDS }
  return { device_code, user_code, verification_uri: `${parts.link_base()}/device`, ...times }
}

const letters = () => randomLetters(LETTERS, HALF)

/** People type it: in any case, with or without the hyphen. */
function hashOfUserCode(secrets: Secrets, user_code: string): string {
  const plain = user_code.toUpperCase().replaceAll(/[^A-Z]/g, "")
  return secrets.mac("user code", plain).toString("base64url")
}

type RefusalReason = "authorization_pending" | "slow_down" | "expired" | "denied"

/**
 * RFC 8628, 3.4 and 3.5. Throws 422 with `details.reason` until a user approves; an early question
 * lengthens the interval by five seconds. The session is given out once.
 */
export async function collect(
  { store, sessions }: DeviceParts,
  device_code: string,
  client: Omit<SessionClient, "client_name">,
): Promise<SessionReply> {
  // What a refusal writes must be committed, so the error is thrown outside of the transaction.
  const answer = await store.tx(async (tx): Promise<SessionReply | DeviceRefusal> => {
    const own = eq(deviceCodes.device_code_hash, hashOfToken(device_code))
    const [row] = await forUpdate(tx.select().from(deviceCodes).where(own))
    if (!row || row.status === "used" || isPast(row.expires_at)) return { reason: "expired" }
    if (row.status === "denied") return { reason: "denied" }
    if (row.status === "pending") return poll(tx, row)
    const [user] = await tx
      .select()
      .from(consoleUsers)
      .where(eq(consoleUsers.id, row.user_id ?? ""))
    if (user?.status !== "active") return { reason: "denied" }
    await tx.update(deviceCodes).set({ status: "used" }).where(eq(deviceCodes.id, row.id))
    return sessions.start(tx, user, { ...client, client_name: row.client_name })
  })
  if ("reason" in answer) throw refused(answer)
  return answer
}

interface DeviceRefusal {
  reason: RefusalReason
  interval?: number
}

async function poll(
  tx: Tx,
  { id, last_polled_at, interval_seconds }: DeviceCodeRow,
): Promise<DeviceRefusal> {
  const elapsed = last_polled_at ? millis() - millisFrom(last_polled_at) : Number.POSITIVE_INFINITY
  const is_early = elapsed >= 0 && elapsed < interval_seconds * 1000
  const interval = interval_seconds + (is_early ? SLOWER_SECONDS : 0)
  const change = { last_polled_at: now(), interval_seconds: interval }
  await tx.update(deviceCodes).set(change).where(eq(deviceCodes.id, id))
  return { reason: is_early ? "slow_down" : "authorization_pending", interval }
}

const WORDS: Record<RefusalReason, string> = {
  authorization_pending:
    "Nobody has approved this sign-in yet. Ask again after `interval` seconds.",
  slow_down: "You asked too early. From now on, wait five seconds longer between two requests.",
  expired: "This sign-in has expired or was used already. Begin a new one.",
  denied: "The person denied this sign-in.",
}

const refused = ({ reason, interval }: DeviceRefusal) =>
  new ApiError("validation_error", WORDS[reason], {
    fields: [],
    reason,
    ...(interval !== undefined && { interval }),
  })

/** The sign-in that waits for this code. Throws 404. */
export async function waitingFor(
  db: Reader,
  secrets: Secrets,
  user_code: string,
): Promise<DeviceCodeRow> {
  const [row] = await db
    .select()
    .from(deviceCodes)
    .where(isWaiting(hashOfUserCode(secrets, user_code)))
  return row && !isPast(row.expires_at) ? row : noCode()
}

const noCode = () =>
  fail(
    "not_found",
    "No sign-in waits for this code. Check the code. A code is valid for 10 minutes.",
  )

const isWaiting = (user_code_hash: string) =>
  and(eq(deviceCodes.user_code_hash, user_code_hash), eq(deviceCodes.status, "pending"))

/** Lets the program in, or turns it away; once. Throws 404. */
export async function decide(
  tx: Tx,
  secrets: Secrets,
  user: UserRow,
  { user_code, approve, ip }: { user_code: string; approve: boolean; ip: string },
): Promise<void> {
  const row = await waitingFor(tx, secrets, user_code)
  const status = approve ? "approved" : "denied"
  const mine = and(eq(deviceCodes.id, row.id), isWaiting(row.user_code_hash))
  const change = tx.update(deviceCodes).set({ status, user_id: user.id }).where(mine)
  if ((await change.returning({ id: deviceCodes.id })).length === 0) noCode()
  const after = { client_name: row.client_name, ip: row.ip }
  await recordOwn(tx, user, ip, `device.${status}`, { after })
}
