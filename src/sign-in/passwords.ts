import { desc, eq } from "drizzle-orm"
import { fail } from "../core/errors"
import { newId } from "../core/ids"
import { now } from "../core/time"
import { Semaphore } from "../lib/semaphore"
import { countCharacters } from "../lib/text"
import type { Reader, Tx } from "../store/store"
import { isCommon } from "./common-passwords"
import { needsRehash, OWN_COST, readHash } from "./foreign-hashes"
import { kitTable, type OwnColumns, type OwnerTable } from "./owner-tables"
import type { passwordHistoryColumns } from "./person-columns"

/** Each takes a core for tens of milliseconds: more at once would starve everything else. */
const AT_ONCE = 2
const MOST_WAITING = 100

/**
 * The hash of no user: compared with the password where there is no user, so that a refusal takes
 * as long.
 */
const DUMMY =
  "$argon2id$v=19$m=19456,t=2,p=1$elY4qYAosTWKdHZDDl7+ilr60VNRUFoPpj9RRcej+tg$ghH8byrAoYbLgd8+jQ9rrta9Xg8M5VCkJIyPeQ/aCE0"

const permits = new Semaphore(AT_ONCE)
let pending = 0

type HistoryColumns = ReturnType<typeof passwordHistoryColumns>
type HistoryTable = OwnerTable<HistoryColumns>

/** What an owner asks of a password. All four kinds of characters are always needed. */
export interface PasswordRules {
  min_length: number
  /** How many of the last passwords are refused, the present one included. */
  history: number
  refuses_common: boolean
}

export const LEAST_POLICY: PasswordRules = { min_length: 8, history: 5, refuses_common: false }

/** The hash of a password that a person chose. Throws 422 `weak_password`. */
export function hashNew(password: string, policy = LEAST_POLICY): Promise<string> {
  requireStrength(password, policy)
  return hash(password)
}

/** As `hashNew`, for a user with a password. Throws 422 `password_recently_used` as well. */
export async function hashNext(
  db: Reader,
  { table, user_id }: { table: HistoryTable; user_id: string },
  password: string,
  policy = LEAST_POLICY,
): Promise<string> {
  requireStrength(password, policy)
  for (const { password_hash } of await remembered(db, table, user_id, policy)) {
    if (await verify(password, password_hash)) {
      fail(
        "password_recently_used",
        `You used this password before. Choose one that is not among your last ${policy.history}.`,
      )
    }
  }
  return hash(password)
}

/** Throws 503 `service_unavailable` when a hundred are waiting already. */
export const hash = (password: string): Promise<string> =>
  withPermit(() => Bun.password.hash(normal(password), OWN_COST))

/** Without a hash it takes as long and is false. It may be a hash of another system (`readHash`). */
export const verify = (
  password: string,
  password_hash: string | null | undefined,
): Promise<boolean> =>
  withPermit(async () => {
    const hash = password_hash ?? DUMMY
    const same = await (needsRehash(hash)
      ? provesAsTyped(password, hash)
      : Bun.password.verify(normal(password), hash))
    return same && hash === password_hash
  })

/** Other systems hash what was typed, and our own hashes of another cost are of the normal form. */
async function provesAsTyped(password: string, hash: string): Promise<boolean> {
  const foreign = readHash(hash)
  for (const form of new Set([normal(password), password]))
    if (await foreign?.proves(form)) return true
  return false
}

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

/** Throws 422 `weak_password`, and says what is missing. */
export function requireStrength(password: string, policy: PasswordRules): void {
  const missing = lacking(password, policy)
  if (missing.length === 0) return
  const text = `A password needs at least ${policy.min_length} characters, with an upper-case letter, a lower-case letter, a digit and a symbol.`
  const common = missing.includes("common") ? " This one is among those that everybody tries." : ""
  fail("weak_password", text + common, { missing })
}

/** Longer than any typed password; it bounds the work of hashing. */
export const MOST_PASSWORD_CHARACTERS = 1024

type PasswordRule = [name: string, met: (text: string, policy: PasswordRules) => boolean]

const RULES: PasswordRule[] = [
  ["length", (text, { min_length }) => countCharacters(text) >= min_length],
  ["upper", (text) => /\p{Lu}/u.test(text)],
  ["lower", (text) => /\p{Ll}/u.test(text)],
  ["digit", (text) => /\p{Nd}/u.test(text)],
  ["symbol", (text) => /[^\p{L}\p{N}\p{M}]/u.test(text)],
  ["common", (text, { refuses_common }) => !refuses_common || !isCommon(text)],
]

/** What a password lacks: `length`, `upper`, `lower`, `digit`, `symbol`; `common` for one of the most used. */
export const lacking = (password: string, policy = LEAST_POLICY): string[] =>
  RULES.filter(([, met]) => !met(password, policy)).map(([name]) => name)

const remembered = (
  db: Reader,
  table: HistoryTable,
  user_id: string,
  { history }: Pick<PasswordRules, "history">,
) => {
  const entries = kitTable<HistoryColumns>(table)
  const own = eq(entries.user_id, user_id)
  return db.select().from(entries).where(own).orderBy(desc(entries.id)).limit(history)
}

/** Notes a password that was set, so that `hashNext` refuses it; older ones than it looks at are forgotten. */
export async function remember<Table extends HistoryTable>(
  tx: Tx,
  table: Table,
  row: { user_id: string; password_hash: string } & OwnColumns<Table, keyof HistoryColumns>,
  policy: Pick<PasswordRules, "history"> = LEAST_POLICY,
): Promise<void> {
  const entries = kitTable<HistoryColumns>(table)
  await tx.insert(entries).values({ ...row, id: newId(), created_at: now() })
  const kept = (await remembered(tx, table, row.user_id, policy)).map(({ id }) => id)
  const all = tx.select({ id: entries.id }).from(entries)
  for (const { id } of await all.where(eq(entries.user_id, row.user_id))) {
    if (!kept.includes(id)) await tx.delete(entries).where(eq(entries.id, id))
  }
}
