import { timingSafeEqual } from "node:crypto"
import { eq } from "drizzle-orm"
import { accounts, type SendingStatus } from "../accounts/tables"
import { fail } from "../core/errors"
import { millis, millisFrom } from "../core/time"
import { hashOf, lookupOf } from "../lib/api-key"
import { projects } from "../projects/tables"
import { engine } from "../store/columns"
import { onChanged } from "../store/group-commit"
import { prepared } from "../store/statements"
import type { Reader } from "../store/store"
import { grants } from "./scopes"
import { apiKeys } from "./tables"

/** Whoever the guard let in, by an API key. */
export interface Caller {
  kind: "key"
  key_id: string
  account_id: string
  project_id: string
  scopes: string[]
  ip_addresses: string[]
  plan: string
  account_status: "active" | "locked" | "suspended"
  sending_status: SendingStatus
  sending_status_reason: string | null
}

interface Known extends Lifetime {
  caller: Caller
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
export async function authenticate(db: Reader, key: string): Promise<Caller> {
  const hash = hashOf(key)
  const found = known.get(db)?.get(hash) ?? (await lookUp(db, key, hash))
  return found && isUsable(found) ? found.caller : refuse()
}

async function lookUp(db: Reader, key: string, hash: string): Promise<Known | undefined> {
  const memory = memoryOf(db) // before reading: a change meanwhile replaces it, and forgets ours
  const lookup = lookupOf(key)
  const [row] = lookup ? await findCaller(db, { lookup }) : []
  const proven = isEqual(hash, row?.key_hash ?? NO_HASH)
  if (!row || !proven) return undefined
  const { key_hash: _, expires_at, revoked_at, project_status, ...caller } = row
  const found: Known = {
    caller: { kind: "key", ...caller },
    expires_at,
    revoked_at,
    project_status,
  }
  if (memory.size >= MOST_KNOWN) memory.clear()
  if (engine === "sqlite") memory.set(hash, found)
  return found
}

function memoryOf(db: Reader): Map<string, Known> {
  const memory = known.get(db) ?? new Map<string, Known>()
  known.set(db, memory)
  return memory
}

export const refuse = () => fail("unauthorized", "The API key is missing or not valid.")

/** Throws 403 `forbidden` with the scope that is missing. */
export function allow({ scopes }: Caller, required: string) {
  if (grants(scopes, required)) return
  const [required_scope] = required.split("|")
  const wanted = required.replaceAll("|", " or ")
  fail("forbidden", `This key lacks the scope ${wanted}.`, { required_scope })
}

interface Lifetime {
  project_status: string
  expires_at: string | null
  revoked_at: string | null
}

const isUsable = ({ project_status, expires_at, revoked_at }: Lifetime) =>
  project_status === "active" && revoked_at === null && !isPast(expires_at)

const isPast = (moment: string | null) => moment !== null && millisFrom(moment) <= millis()

const isEqual = (left: string, right: string) =>
  timingSafeEqual(Buffer.from(left), Buffer.from(right))

const findCaller = prepared({ lookup: apiKeys.lookup }, (db: Reader, slot) =>
  db
    .select({
      key_id: apiKeys.id,
      account_id: apiKeys.account_id,
      project_id: apiKeys.project_id,
      scopes: apiKeys.scopes,
      ip_addresses: apiKeys.ip_addresses,
      key_hash: apiKeys.key_hash,
      expires_at: apiKeys.expires_at,
      revoked_at: apiKeys.revoked_at,
      project_status: projects.status,
      plan: accounts.plan,
      account_status: accounts.status,
      sending_status: accounts.sending_status,
      sending_status_reason: accounts.sending_status_reason,
    })
    .from(apiKeys)
    .innerJoin(projects, eq(projects.id, apiKeys.project_id))
    .innerJoin(accounts, eq(accounts.id, apiKeys.account_id))
    .where(eq(apiKeys.lookup, slot.lookup)),
)
