import * as audit from "../audit-log/audit-log"
import { ApiError } from "../core/errors"
import { type BulkItems, shownFailures } from "../http/bulk-items"
import { answerOnce, type Claim } from "../http/idempotency"
import type { Caller } from "../identity/caller"
import * as passwords from "../sign-in/passwords"
import { bumpAll } from "../store/counters"
import { inserter, newRowInserter } from "../store/statements"
import type { Tx } from "../store/store"
import type { AuthParts } from "./auth-parts"
import { countsOf, defaultMembership, type EndUserRow, newUser } from "./end-users"
import type { AuthEnvironment } from "./environments"
import { linkSubscriber } from "./linked-subscriber"
import { takenBy } from "./managed-users"
import { requireAllowedDomain } from "./methods"
import { memberCounts } from "./organization-rows"
import { memberships } from "./organizations/tables"
import { rememberPassword, rulesOf } from "./own-password"
import { users } from "./tables"
import type { WantedUser } from "./user-input"

/** Users of one transaction: others work in between. */
const CHUNK = 50

interface Listed {
  index: number
  row: EndUserRow
  /** The password was hashed here. */
  is_known: boolean
}

type Failures = BulkItems<unknown>["failed"]

/**
 * Adds up to 1,000 users in small transactions; the answer names those that failed. Nobody is told of them, and a hash
 * of another system is renewed when its user signs in. Plain passwords are hashed one by one, so that sign-ins go on.
 */
export async function importUsers(
  { store }: AuthParts,
  environment: AuthEnvironment,
  caller: Caller,
  { given, failed: unread }: BulkItems<WantedUser>,
  claim: Claim | undefined,
) {
  const { listed, failed } = await hashedOf(environment, given)
  failed.push(...unread)
  for (let at = 0; at < listed.length; at += CHUNK) {
    const some = listed.slice(at, at + CHUNK)
    failed.push(...(await store.tx((tx) => insertSome(tx, environment, some))))
  }
  failed.sort((one, other) => one.index - other.index)
  const imported = given.length + unread.length - failed.length
  return answerOnce(store, claim, async (tx) => {
    const { account_id, project_id } = caller
    const target = { type: "environment", id: environment.id }
    const entry = { account_id, project_id, action: "user.imported", target, after: { imported } }
    await audit.record(tx, caller, entry)
    return { imported, failed: shownFailures({ given: [], failed }) }
  })
}

/** What one of the users can be refused with; the others do not wait for it. */
const REFUSED: ReadonlySet<string> = new Set(["weak_password", "forbidden"])

/** Throws 503 `service_unavailable` before anything is written. */
async function hashedOf(environment: AuthEnvironment, given: BulkItems<WantedUser>["given"]) {
  const rules = rulesOf(environment)
  const listed: Listed[] = []
  const failed: Failures = []
  for (const { index, item } of given) {
    const { password, ...wanted } = item
    const is_known = password !== undefined
    try {
      requireAllowedDomain(environment.allowed_email_domains, wanted.email ?? null)
      const own = is_known && { password_hash: await passwords.hashNew(password, rules) }
      listed.push({ index, is_known, row: newUser(environment, { ...wanted, ...own }) })
    } catch (error) {
      if (!(error instanceof ApiError) || !REFUSED.has(error.code)) throw error
      failed.push({ index, error })
    }
  }
  return { listed, failed }
}

/** Returns those whose address or number has a user already. */
async function insertSome(tx: Tx, environment: AuthEnvironment, some: Listed[]): Promise<Failures> {
  const fresh = await insertRows(
    tx,
    some.map(({ row }) => row),
  )
  const made = some.filter(({ row }) => fresh.has(row.id))
  const members = made.map(({ row }) => defaultMembership(environment, row))
  await insertMembers(tx, members)
  await bumpAll(tx, [
    ...made.flatMap(({ row }) => countsOf(row, 1)),
    ...members.flatMap((member) => memberCounts(member, 1)),
  ])
  for (const { row, is_known } of made) {
    if (is_known && row.password_hash)
      await rememberPassword(tx, environment, row, row.password_hash)
    await linkSubscriber(tx, row)
  }
  const failed: Failures = []
  for (const { index, row } of some)
    if (!fresh.has(row.id)) failed.push({ index, error: await takenBy(tx, environment, row) })
  return failed
}

const insertRows = newRowInserter(users, "id")
const insertMembers = inserter(memberships, { quiet: true })
