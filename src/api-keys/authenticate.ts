import { timingSafeEqual } from "node:crypto"
import { eq } from "drizzle-orm"
import { accounts, type SendingStatus } from "../accounts/tables"
import { fail } from "../core/errors"
import { millis, millisFrom } from "../core/time"
import { hashOf, lookupOf } from "../lib/api-key"
import { projects } from "../projects/tables"
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

const NO_HASH = "0".repeat(64)

/** One answer for a missing, unknown, revoked and expired key, so that nobody can tell them apart. */
export async function authenticate(db: Reader, key: string): Promise<Caller> {
  const lookup = lookupOf(key)
  const [found] = lookup ? await findCaller(db, { lookup }) : []
  const proven = isEqual(hashOf(key), found?.key_hash ?? NO_HASH)
  if (!found || !proven || !isUsable(found)) return refuse()
  const { key_hash: _, expires_at: __, revoked_at: ___, project_status: ____, ...caller } = found
  return { kind: "key", ...caller }
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
