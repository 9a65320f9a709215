import { timingSafeEqual } from "node:crypto"
import { crc32 } from "node:zlib"
import { eq, type SQL } from "drizzle-orm"
import { fail } from "../core/errors"
import { isPast } from "../core/time"
import { cached } from "../store/cached"
import { prepared } from "../store/statements"
import type { Reader } from "../store/store"
import { accountFacts, type Caller, nobody, withDefaults } from "./caller"
import { accounts, apiKeys, projects } from "./tables"

interface ProvenKey {
  row: KeyRow
  /** At the address of the last request. */
  caller: Caller
}

type KeyRow = Awaited<ReturnType<typeof findKey>>[number]

const NO_HASH = "0".repeat(64)

/** Keys that proved themselves, by their hash. On Postgres another node may revoke one any time. */
const proofs = cached<ProvenKey | undefined>({
  tables: ["api_keys", "projects", "accounts"],
  keeps: (proven) => proven !== undefined,
})

/** One answer for a missing, unknown, revoked and expired key, so that a guesser learns nothing. */
export function authenticate(db: Reader, key: string, ip: string): Caller | Promise<Caller> {
  const hash = hashOf(key)
  const proven = proofs(db, hash, () => prove(db, key, hash))
  return proven instanceof Promise ? proven.then((one) => usable(one, ip)) : usable(proven, ip)
}

function usable(proven: ProvenKey | undefined, ip: string): Caller {
  if (!proven || !isUsable(proven.row)) return refuse()
  if (proven.caller.ip !== ip) proven.caller = { ...proven.caller, ip }
  return proven.caller
}

const knownKeys = cached<KeyRow | undefined>({
  tables: ["api_keys", "projects", "accounts"],
  keeps: (row) => row !== undefined,
})

/** As `authenticate`, for a caller that proved already that it may act as the key of this id. */
export async function authenticateId(db: Reader, key_id: string, ip: string): Promise<Caller> {
  const row = await knownKeys(db, key_id, async () => (await findKeyById(db, { id: key_id }))[0])
  return row && isUsable(row) ? { ...callerOf(row), ip } : refuse()
}

async function prove(db: Reader, key: string, hash: string): Promise<ProvenKey | undefined> {
  const lookup = lookupOf(key)
  const [row] = lookup ? await findKey(db, { lookup }) : []
  const is_right = timingSafeEqual(Buffer.from(hash), Buffer.from(row?.key.key_hash ?? NO_HASH))
  return row && is_right ? { row, caller: callerOf(row) } : undefined
}

/** The same words for every kind of credential and every fault. */
export const refuse = () =>
  fail(
    "unauthorized",
    "The credential is missing or not valid. Send an API key or an access token.",
  )

const callerOf = ({ key, project, account }: KeyRow): Caller => ({
  ...nobody(""),
  ...accountFacts(account),
  kind: "key",
  actor: { type: "key", id: key.id, name: key.name },
  key_id: key.id,
  project_id: key.project_id,
  scopes: key.scopes,
  domain_id: key.domain_id,
  ip_addresses: key.ip_addresses,
  expires_at: key.expires_at,
  project_settings: withDefaults(project.settings),
})

/** Keys stop at once when their project or account is being deleted. */
function isUsable({ key, project, account }: KeyRow) {
  const alive = project.status === "active" && account.deleting_at === null && !project.hidden
  return alive && key.revoked_at === null && (key.expires_at === null || !isPast(key.expires_at))
}

const keysWithOwner = (db: Reader, which: SQL) =>
  db
    .select({ key: apiKeys, project: projects, account: accounts })
    .from(apiKeys)
    .innerJoin(projects, eq(projects.id, apiKeys.project_id))
    .innerJoin(accounts, eq(accounts.id, apiKeys.account_id))
    .where(which)

const findKey = prepared({ lookup: apiKeys.lookup }, (db: Reader, slot) =>
  keysWithOwner(db, eq(apiKeys.lookup, slot.lookup)),
)

const findKeyById = prepared({ id: apiKeys.id }, (db: Reader, slot) =>
  keysWithOwner(db, eq(apiKeys.id, slot.id)),
)

/** `svc_live_` + 8 characters that find the key + 43 that prove it + 6 of checksum. */
const FORM = /^svc_live_([0-9A-Za-z]{8})[0-9A-Za-z]{43}[0-9A-Za-z]{6}$/

const PREFIX = "svc_live_"
const LOOKUP_CHARACTERS = 8
const SECRET_CHARACTERS = 43 // 62^43 > 2^256
const CHECKSUM_CHARACTERS = 6
const ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

/** A new key's text: 256 random bits, and a checksum by which scanners can tell it is one. */
export function newKeyText(): string {
  const lookup = base62(random(6), LOOKUP_CHARACTERS)
  const body = PREFIX + lookup + base62(random(32), SECRET_CHARACTERS)
  return body + checksum(body)
}

/** The part that finds the row; undefined for a text that no key of ours can have. */
export function lookupOf(key: string): string | undefined {
  const lookup = FORM.exec(key)?.[1]
  if (!lookup) return undefined
  const body = key.slice(0, -CHECKSUM_CHARACTERS)
  return key.endsWith(checksum(body)) ? lookup : undefined
}

/** What a list may show: enough to recognise a key, nothing that proves it. */
export const visibleParts = (key: string) => ({
  prefix: key.slice(0, PREFIX.length + LOOKUP_CHARACTERS),
  last4: key.slice(-4),
})

/** The key holds 256 random bits, so a plain hash is enough: there is nothing to guess. */
export const hashOf = (key: string): string => Bun.SHA256.hash(key, "hex")

const checksum = (body: string) => base62Of(BigInt(crc32(body)), CHECKSUM_CHARACTERS)

const random = (bytes: number) => crypto.getRandomValues(new Uint8Array(bytes))

const base62 = (bytes: Uint8Array, characters: number) =>
  base62Of(BigInt(`0x${Buffer.from(bytes).toString("hex")}`), characters)

function base62Of(number: bigint, characters: number): string {
  let text = ""
  for (let rest = number; text.length < characters; rest /= 62n) {
    text = ALPHABET[Number(rest % 62n)] + text
  }
  return text
}
