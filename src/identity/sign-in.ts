import { and, eq, gt, isNull, lt, sql } from "drizzle-orm"
import { fail } from "../core/errors"
import type { Secrets } from "../core/secrets"
import { now, secondsFromNow } from "../core/time"
import type { Reader, Store, Tx } from "../store/store"
import { isTotp, prove, spend } from "./mfa-codes"
import * as passwords from "./passwords"
import type { Client, SessionReply, Sessions } from "./sessions"
import { consoleSessions, consoleUsers, mfaChallenges } from "./tables"
import { BUCKETS, type Throttle } from "./throttle"
import { hashOfToken, newToken } from "./tokens"
import * as users from "./users"

const CHALLENGE_SECONDS = 300
const MOST_TRIES = 5

export interface SignInParts {
  store: Store
  secrets: Secrets
  sessions: Sessions
  throttle: Throttle
}

export interface Challenged {
  mfa_required: true
  mfa_challenge: { token: string; methods: ["totp", "backup_code"]; expires_at: string }
}

/**
 * A session, or the question for the second factor. Throws 401 with the same words and after the
 * same work for an unknown address, a wrong password and a locked user, and 429 for guessing.
 */
export async function signIn(
  parts: SignInParts,
  { email, password }: { email: string; password: string },
  client: Client,
): Promise<SessionReply | Challenged> {
  const { store } = parts
  const turns = await turnsOf(store.read, email, client.ip ?? "")
  await parts.throttle.take(...turns)
  const user = await users.byEmail(store.read, email)
  const proven = await passwords.verify(password, user?.password_hash)
  if (!user || !proven || user.status !== "active") return wrong()
  return store.tx(async (tx) => {
    const same = await demandUnchanged(tx, user)
    if (same.mfa_secret) return challenge(tx, same.id)
    await forgive(tx, parts.throttle, turns)
    return parts.sessions.start(tx, same, client)
  })
}

export const wrong = () => fail("unauthorized", "The email or the password is not right.")

/** The password may have been changed, or the user locked, while it was being compared. */
export async function demandUnchanged(tx: Tx, { id, password_hash }: users.UserRow) {
  const [user] = await tx.select().from(consoleUsers).where(eq(consoleUsers.id, id))
  return user?.password_hash === password_hash && user.status === "active" ? user : wrong()
}

export type Turns = Parameters<Throttle["take"]>

/**
 * By address and by identifier. From where its owner is signed in already, an identifier has a
 * bucket of its own: a stranger who guesses elsewhere cannot lock its owner out.
 */
export async function turnsOf(db: Reader, email: string, ip: string): Promise<Turns> {
  const email_key = users.emailKey(email)
  const known = await db
    .select({ id: consoleSessions.id })
    .from(consoleSessions)
    .innerJoin(consoleUsers, eq(consoleUsers.id, consoleSessions.user_id))
    .where(
      and(
        eq(consoleUsers.email_key, email_key),
        eq(consoleSessions.ip, ip),
        isNull(consoleSessions.revoked_at),
        gt(consoleSessions.expires_at, now()),
      ),
    )
    .limit(1)
  return [
    [BUCKETS.sign_in_address, ip],
    [BUCKETS.sign_in, known.length > 0 ? `${email_key} ${ip}` : email_key],
  ]
}

export async function forgive(tx: Tx, throttle: Throttle, [by_address, ...others]: Turns) {
  if (by_address) await throttle.giveBack(tx, by_address)
  await throttle.forgive(tx, ...others)
}

async function challenge(tx: Tx, user_id: string): Promise<Challenged> {
  const token = newToken("mfa")
  const expires_at = secondsFromNow(CHALLENGE_SECONDS)
  const row = { token_hash: hashOfToken(token), user_id, attempts: 0, created_at: now() }
  await tx.insert(mfaChallenges).values({ ...row, expires_at })
  const methods: ["totp", "backup_code"] = ["totp", "backup_code"]
  return { mfa_required: true, mfa_challenge: { token, methods, expires_at } }
}

/**
 * The second half of a sign-in. Throws 401 `invalid_mfa` for a challenge that is unknown, old or
 * used up after five tries, `invalid_totp` and `invalid_backup_code` for a code that is wrong or
 * was used before.
 */
export async function answerChallenge(
  parts: SignInParts,
  { token, code }: { token: string; code: string },
  client: Client,
): Promise<SessionReply> {
  const { store, secrets, throttle } = parts
  const token_hash = hashOfToken(token)
  const user_id = await countTry(store, token_hash)
  await throttle.take([BUCKETS.mfa, user_id])
  const user = await users.find(store.read, user_id)
  const proof = await prove(secrets, user, code)
  if (!proof) return wrongCode(code)
  return store.tx(async (tx) => {
    const same = await demandUnchanged(tx, user)
    await closeChallenge(tx, token_hash)
    if (same.mfa_secret !== user.mfa_secret) return noChallenge()
    if (!(await spend(tx, user_id, proof))) return wrongCode(code)
    const turns = await turnsOf(tx, user.email, client.ip ?? "")
    await forgive(tx, throttle, turns)
    await throttle.forgive(tx, [BUCKETS.mfa, user_id])
    return parts.sessions.start(tx, same, client)
  })
}

const isOpen = (token_hash: string) =>
  and(
    eq(mfaChallenges.token_hash, token_hash),
    isNull(mfaChallenges.used_at),
    gt(mfaChallenges.expires_at, now()),
  )

/** Counted before the code is looked at, so that guesses side by side are counted too. */
async function countTry(store: Store, token_hash: string): Promise<string> {
  const { attempts, user_id } = mfaChallenges
  const counted = await store.tx((tx) =>
    tx
      .update(mfaChallenges)
      .set({ attempts: sql`${attempts} + 1` })
      .where(and(isOpen(token_hash), lt(attempts, MOST_TRIES)))
      .returning({ user_id }),
  )
  return counted[0]?.user_id ?? noChallenge()
}

async function closeChallenge(tx: Tx, token_hash: string) {
  const closing = tx.update(mfaChallenges).set({ used_at: now() }).where(isOpen(token_hash))
  const closed = await closing.returning({ token_hash: mfaChallenges.token_hash })
  if (closed.length === 0) noChallenge()
}

const noChallenge = () =>
  fail(
    "invalid_mfa",
    "No sign-in waits for a code with this token. Sign in with the password again.",
  )

export const wrongCode = (code: string) =>
  isTotp(code)
    ? fail("invalid_totp", "This code is not right or was used before. Enter a new code.")
    : fail(
        "invalid_backup_code",
        "This backup code is not right or was used before. Enter another one.",
      )
