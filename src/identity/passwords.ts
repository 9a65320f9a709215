import { and, desc, eq, isNull } from "drizzle-orm"
import { fail } from "../core/errors"
import { newId } from "../core/ids"
import { now } from "../core/time"
import { Semaphore } from "../lib/semaphore"
import { countCharacters } from "../lib/text"
import type { Reader, Tx } from "../store/store"
import { consoleUsers, passwordHistory, passwordResets } from "./tables"

/** OWASP's least for argon2id: 19 MiB and two passes. */
const COST = { algorithm: "argon2id", memoryCost: 19_456, timeCost: 2 } as const

/** Each takes a core for tens of milliseconds: more at once would starve everything else. */
const AT_ONCE = 2
const MOST_WAITING = 100

/**
 * The hash of no user: compared with the password where there is no user, so that a refusal takes
 * as long.
 */
const DUMMY =
  "$argon2id$v=19$m=19456,t=2,p=1$elY4qYAosTWKdHZDDl7+ilr60VNRUFoPpj9RRcej+tg$ghH8byrAoYbLgd8+jQ9rrta9Xg8M5VCkJIyPeQ/aCE0"

const REMEMBERED = 5

const permits = new Semaphore(AT_ONCE)
let pending = 0

/** The hash of a password that a person chose. Throws 422 `weak_password`. */
export function hashNew(password: string): Promise<string> {
  requireStrength(password)
  return hash(password)
}

/** As `hashNew`, for a user with a password. Throws 422 `password_recently_used` as well. */
export async function hashNext(db: Reader, user_id: string, password: string): Promise<string> {
  requireStrength(password)
  await requireUnused(db, user_id, password)
  return hash(password)
}

/** Throws 503 `service_unavailable` when a hundred are waiting already. */
export const hash = (password: string): Promise<string> =>
  withPermit(() => Bun.password.hash(normal(password), COST))

/** Without a hash it takes as long and is false. */
export const verify = (password: string, password_hash: string | undefined): Promise<boolean> =>
  withPermit(async () => {
    const same = await Bun.password.verify(normal(password), password_hash ?? DUMMY)
    return same && password_hash !== undefined
  })

/** The same password from any keyboard: composed and decomposed letters are one. */
const normal = (password: string) => password.normalize("NFKC")

async function withPermit<Result>(work: () => Promise<Result>): Promise<Result> {
  if (pending >= AT_ONCE + MOST_WAITING) busy()
  pending += 1
  const release = await permits.acquire()
  try {
    return await work()
  } finally {
    release()
    pending -= 1
  }
}

const busy = () =>
  fail(
    "service_unavailable",
    "Too many people are signing in at this moment. Nothing was done. Try again in a second.",
    { reason: "busy", retry_after: 1 },
  )

function requireStrength(password: string): void {
  const missing = lacking(password)
  if (missing.length === 0) return
  const text =
    "A password needs at least 8 characters, with an upper-case letter, a lower-case letter, a digit and a symbol."
  fail("weak_password", text, { missing })
}

const LEAST_CHARACTERS = 8

/** Longer than any typed password; it bounds the work of hashing. */
export const MOST_PASSWORD_CHARACTERS = 1024

const RULES: [name: string, met: (text: string) => boolean][] = [
  ["length", (text) => countCharacters(text) >= LEAST_CHARACTERS],
  ["upper", (text) => /\p{Lu}/u.test(text)],
  ["lower", (text) => /\p{Ll}/u.test(text)],
  ["digit", (text) => /\p{Nd}/u.test(text)],
  ["symbol", (text) => /[^\p{L}\p{N}\p{M}]/u.test(text)],
]

/** What a password lacks: `length` (8 characters), `upper`, `lower`, `digit`, `symbol`. */
export const lacking = (password: string): string[] =>
  RULES.filter(([, met]) => !met(password)).map(([name]) => name)

/** Throws 422 `password_recently_used` for one of the last five, the present one included. */
async function requireUnused(db: Reader, user_id: string, password: string): Promise<void> {
  for (const { password_hash } of await remembered(db, user_id)) {
    if (await verify(password, password_hash)) {
      fail(
        "password_recently_used",
        `You used this password before. Choose one that is not among your last ${REMEMBERED}.`,
      )
    }
  }
}

const remembered = (db: Reader, user_id: string) =>
  db
    .select()
    .from(passwordHistory)
    .where(eq(passwordHistory.user_id, user_id))
    .orderBy(desc(passwordHistory.id))
    .limit(REMEMBERED)

/** Puts a new password in place; no older mail sets another. Sessions are the caller's business. */
export async function set(tx: Tx, user_id: string, password_hash: string): Promise<void> {
  const open = and(eq(passwordResets.user_id, user_id), isNull(passwordResets.used_at))
  await tx.update(passwordResets).set({ used_at: now() }).where(open)
  const change = { password_hash, updated_at: now() }
  await tx.update(consoleUsers).set(change).where(eq(consoleUsers.id, user_id))
  await remember(tx, user_id, password_hash)
}

export async function remember(tx: Tx, user_id: string, password_hash: string): Promise<void> {
  const row = { id: newId(), user_id, password_hash, created_at: now() }
  await tx.insert(passwordHistory).values(row)
  const kept = (await remembered(tx, user_id)).map(({ id }) => id)
  const all = tx.select({ id: passwordHistory.id }).from(passwordHistory)
  for (const { id } of await all.where(eq(passwordHistory.user_id, user_id))) {
    if (!kept.includes(id)) await tx.delete(passwordHistory).where(eq(passwordHistory.id, id))
  }
}
