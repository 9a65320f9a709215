import type { Static } from "@sinclair/typebox"
import { and, eq } from "drizzle-orm"
import { fail } from "../core/errors"
import type { Secrets } from "../core/secrets"
import { closeChallenge, startChallenge, tryChallenge } from "../sign-in/challenges"
import * as passwords from "../sign-in/passwords"
import { isAlive } from "../sign-in/person-sessions"
import { isTotp } from "../sign-in/second-factors"
import type { CountedAttempt, Throttle } from "../sign-in/throttle"
import type { Reader, Store, Tx } from "../store/store"
import { type MfaProof, prove, spend } from "./mfa"
import type { Challenged } from "./schemas"
import type { SessionClient, SessionReply, Sessions } from "./sessions"
import { BUCKETS } from "./sign-in-buckets"
import { consoleSessions, consoleUsers, mfaChallenges } from "./tables"
import * as users from "./users"

export interface ProofParts {
  store: Store
  secrets: Secrets
  throttle: Throttle
}

export interface SignInParts extends ProofParts {
  sessions: Sessions
}

type MfaQuestion = Static<typeof Challenged>

/**
 * A session, or the question for the second factor. Throws 401 with the same words and after the
 * same work for an unknown address, a wrong password and a locked user, and 429 for guessing.
 */
export async function signIn(
  parts: SignInParts,
  { email, password }: { email: string; password: string },
  client: SessionClient,
): Promise<SessionReply | MfaQuestion> {
  const { user, attempts } = await provePassword(parts, email, password, client.ip ?? "")
  return parts.store.tx(async (tx) => {
    const same = await requireUnchanged(tx, user)
    if (same.mfa_secret) return challenge(tx, same.id)
    await forgive(tx, parts.throttle, attempts)
    return parts.sessions.start(tx, same, client)
  })
}

interface TypedCredentials {
  email: string
  password: string
  /** Of the app, or a recovery code; empty where no second factor is on. */
  code: string
}

/**
 * Password and second factor at once, for a form that keeps no session. Throws as `signIn` and
 * `answerChallenge`. The returned function settles it, once, in the transaction of what it allows.
 */
export async function identify(
  parts: ProofParts,
  { email, password, code }: TypedCredentials,
  ip: string,
): Promise<(tx: Tx) => Promise<users.UserRow>> {
  const { secrets, throttle } = parts
  const { user, attempts } = await provePassword(parts, email, password, ip)
  const needs_code = user.mfa_secret !== null
  if (needs_code && code.trim() === "") {
    fail("invalid_totp", "A second factor is on. Enter the code of your authenticator app, too.")
  }
  if (needs_code) await throttle.consume([BUCKETS.mfa, user.id])
  const proof = needs_code ? await prove(secrets, user, code) : undefined
  if (needs_code && !proof) return wrongCode(code)

  return async (tx) => {
    const same = await requireUnchanged(tx, user)
    if (same.mfa_secret !== user.mfa_secret) return wrong()
    if (proof && !(await spend(tx, user.id, proof))) return wrongCode(code)
    await forgive(tx, throttle, attempts)
    await throttle.reset(tx, [BUCKETS.mfa, user.id])
    return same
  }
}

async function provePassword(
  { store, throttle }: ProofParts,
  email: string,
  password: string,
  ip: string,
) {
  const attempts = await attemptsOf(store.read, email, ip)
  await throttle.consume(...attempts)
  const user = await users.byEmail(store.read, email)
  const proven = await passwords.verify(password, user?.password_hash)
  if (!user || !proven || user.status !== "active") return wrong()
  return { user, attempts }
}

const wrong = () => fail("unauthorized", "The email or the password is not right.")

/** The password may have been changed, or the user locked, while it was being compared. */
async function requireUnchanged(tx: Tx, { id, password_hash }: users.UserRow) {
  const [user] = await tx.select().from(consoleUsers).where(eq(consoleUsers.id, id))
  return user?.password_hash === password_hash && user.status === "active" ? user : wrong()
}

/**
 * By address and by identifier. From where its owner is signed in already, an identifier has a
 * bucket of its own: a stranger that guesses elsewhere cannot lock its owner out.
 */
async function attemptsOf(db: Reader, email: string, ip: string): Promise<CountedAttempt[]> {
  const email_key = users.emailKey(email)
  const signed_in = await db
    .select({ id: consoleSessions.id })
    .from(consoleSessions)
    .innerJoin(consoleUsers, eq(consoleUsers.id, consoleSessions.user_id))
    .where(
      and(
        eq(consoleUsers.email_key, email_key),
        eq(consoleSessions.ip, ip),
        isAlive(consoleSessions),
      ),
    )
    .limit(1)
  return [
    [BUCKETS.sign_in_address, ip],
    [BUCKETS.sign_in, signed_in.length > 0 ? `${email_key} ${ip}` : email_key],
  ]
}

async function forgive(tx: Tx, throttle: Throttle, [by_address, ...others]: CountedAttempt[]) {
  if (by_address) await throttle.refund(tx, by_address)
  await throttle.reset(tx, ...others)
}

async function challenge(tx: Tx, user_id: string): Promise<MfaQuestion> {
  const { token, expires_at } = await startChallenge(tx, mfaChallenges, { user_id })
  return {
    mfa_required: true,
    mfa_challenge: { token, methods: ["totp", "backup_code"], expires_at },
  }
}

/**
 * The second half of a sign-in. Throws 401 `invalid_mfa` for a challenge that is unknown, old or
 * used up after five tries, `invalid_totp` and `invalid_backup_code` for a code that is wrong or
 * was used before.
 */
export async function answerChallenge(
  parts: SignInParts,
  { token, code }: { token: string; code: string },
  client: SessionClient,
): Promise<SessionReply> {
  const { store, secrets, throttle } = parts
  const { user_id, token_hash } = (await tryChallenge(store, mfaChallenges, token)) ?? noChallenge()
  await throttle.consume([BUCKETS.mfa, user_id])
  const user = await users.find(store.read, user_id)
  const proof = await prove(secrets, user, code)
  if (!proof) return wrongCode(code)
  return store.tx(async (tx) => {
    const same = await requireUnchanged(tx, user)
    if (!(await closeChallenge(tx, mfaChallenges, token_hash))) noChallenge()
    if (same.mfa_secret !== user.mfa_secret) return noChallenge()
    if (!(await spend(tx, user_id, proof))) return wrongCode(code)
    await forgive(tx, throttle, await attemptsOf(tx, user.email, client.ip ?? ""))
    await throttle.reset(tx, [BUCKETS.mfa, user_id])
    return parts.sessions.start(tx, same, client)
  })
}

const noChallenge = () =>
  fail(
    "invalid_mfa",
    "No sign-in waits for a code with this token. Sign in with the password again.",
  )

const wrongCode = (code: string) =>
  isTotp(code)
    ? fail("invalid_totp", "This code is not right or was used before. Enter a new code.")
    : fail(
        "invalid_backup_code",
        "This backup code is not right or was used before. Enter another one.",
      )

/**
 * A signed-in person proves their identity again. Throws 422 `invalid_current_password`, and 429 for
 * guessing, which a stolen session could be used for.
 */
export async function requirePassword(
  { store, throttle }: ProofParts,
  user_id: string,
  password: string,
): Promise<users.UserRow> {
  await throttle.consume([BUCKETS.proof, user_id])
  const user = await users.find(store.read, user_id)
  if (!(await passwords.verify(password, user.password_hash))) {
    fail("invalid_current_password", "This is not your current password.")
  }
  return user
}

/** Throws 400 `mfa_not_enabled`, 401 `invalid_verification`. The proof is still to be spent. */
export async function requireCode(
  { store, secrets, throttle }: ProofParts,
  user_id: string,
  code: string,
): Promise<{ user: users.UserRow; proof: MfaProof }> {
  await throttle.consume([BUCKETS.proof, user_id])
  const user = await users.find(store.read, user_id)
  if (!user.mfa_secret)
    fail("mfa_not_enabled", "No second factor is on, so nothing was turned off.")
  const proof = await prove(secrets, user, code)
  return proof ? { user, proof } : refuseCode()
}

export const refuseCode = () =>
  fail("invalid_verification", "This code is not right or was used before. Enter a new code.")

/** The proof was right: no guessing. */
export const forgiveProof = ({ throttle }: ProofParts, tx: Tx, user_id: string) =>
  throttle.reset(tx, [BUCKETS.proof, user_id])
