import { timingSafeEqual } from "node:crypto"
import { eq } from "drizzle-orm"
import { fail } from "../core/errors"
import { millis, millisFrom } from "../core/time"
import { accounts } from "../identity/tables"
import { hashOf, lookupOf } from "../lib/api-key"
import { limitsOf } from "../plans/plans"
import { engine } from "../store/columns"
import { onChanged } from "../store/group-commit"
import { prepared } from "../store/statements"
import type { Reader } from "../store/store"
import { type Caller, quotaSubject } from "./caller"
import { withDefaults } from "./project-settings"
import { apiKeys, projects } from "./tables"

interface Known {
  row: Found
  caller: Omit<Caller, "ip">
}

const NO_HASH = "0".repeat(64)
const MOST_KNOWN = 10_000

/** Keys that proved themselves, by their hash, for each database. */
let known = new WeakMap<Reader, Map<string, Known>>()

// On Postgres another node may revoke a key, so there the database is asked every time.
if (engine === "sqlite") {
  onChanged(["api_keys", "projects", "accounts"], () => {
    known = new WeakMap()
  })
}

/** One answer for a missing, unknown, revoked and expired key, so that nobody can tell them apart. */
export async function authenticate(db: Reader, key: string, ip: string): Promise<Caller> {
  const hash = hashOf(key)
  const found = known.get(db)?.get(hash) ?? (await lookUp(db, key, hash))
  return found && isUsable(found.row) ? { ...found.caller, ip } : refuse()
}

async function lookUp(db: Reader, key: string, hash: string): Promise<Known | undefined> {
  const memory = memoryOf(db) // before reading: a change meanwhile replaces it, and forgets ours
  const lookup = lookupOf(key)
  const [row] = lookup ? await findKey(db, { lookup }) : []
  const proven = isEqual(hash, row?.key_hash ?? NO_HASH)
  if (!row || !proven) return undefined
  const found: Known = { row, caller: callerOf(row) }
  if (memory.size >= MOST_KNOWN) memory.clear()
  if (engine === "sqlite") memory.set(hash, found)
  return found
}

function memoryOf(db: Reader): Map<string, Known> {
  const memory = known.get(db) ?? new Map<string, Known>()
  known.set(db, memory)
  return memory
}

/** The same words for every kind of credential, whatever is wrong with it. */
export const refuse = () =>
  fail(
    "unauthorized",
    "The credential is missing or not valid. Send an API key or an access token.",
  )

type Found = Awaited<ReturnType<typeof findKey>>[number]

const callerOf = (found: Found): Omit<Caller, "ip"> => ({
  kind: "key",
  actor: { type: "key", id: found.key_id, name: found.name },
  key_id: found.key_id,
  user_id: null,
  session_id: null,
  account_id: found.account_id,
  project_id: found.project_id,
  scopes: found.scopes,
  domain_id: found.domain_id,
  account_role: null,
  project_role: null,
  operator: false,
  ip_addresses: found.ip_addresses,
  expires_at: found.expires_at,
  plan: found.plan,
  limits: limitsOf(found),
  quota_subject: quotaSubject({ ...found, id: found.account_id }),
  account_status: found.account_status,
  sending_status: found.sending_status,
  sending_status_reason: found.sending_status_reason,
  project_settings: withDefaults(found.project_settings),
  account_settings: found.account_settings,
})

/** Keys stop at once when their project or account is being deleted. */
function isUsable({ project_status, deleting_at, hidden, expires_at, revoked_at }: Found) {
  const alive = project_status === "active" && deleting_at === null && !hidden
  return alive && revoked_at === null && !isPast(expires_at)
}

const isPast = (moment: string | null) => moment !== null && millisFrom(moment) <= millis()

const isEqual = (left: string, right: string) =>
  timingSafeEqual(Buffer.from(left), Buffer.from(right))

const findKey = prepared({ lookup: apiKeys.lookup }, (db: Reader, slot) =>
  db
    .select({
      key_id: apiKeys.id,
      name: apiKeys.name,
      account_id: apiKeys.account_id,
      project_id: apiKeys.project_id,
      scopes: apiKeys.scopes,
      domain_id: apiKeys.domain_id,
      ip_addresses: apiKeys.ip_addresses,
      key_hash: apiKeys.key_hash,
      expires_at: apiKeys.expires_at,
      revoked_at: apiKeys.revoked_at,
      project_status: projects.status,
      project_settings: projects.settings,
      hidden: projects.hidden,
      plan: accounts.plan,
      limits: accounts.limits,
      owner_user_id: accounts.owner_user_id,
      deleting_at: accounts.deleting_at,
      account_status: accounts.status,
      account_settings: accounts.settings,
      sending_status: accounts.sending_status,
      sending_status_reason: accounts.sending_status_reason,
    })
    .from(apiKeys)
    .innerJoin(projects, eq(projects.id, apiKeys.project_id))
    .innerJoin(accounts, eq(accounts.id, apiKeys.account_id))
    .where(eq(apiKeys.lookup, slot.lookup)),
)
