import { generateKeyPair, type KeyObject, randomBytes } from "node:crypto"
import { and, asc, eq } from "drizzle-orm"
import { newId } from "../core/ids"
import type { Secrets } from "../core/secrets"
import { now } from "../core/time"
import { cached } from "../store/cached"
import { prepared } from "../store/statements"
import type { Reader } from "../store/store"
import type { KeyRow } from "./expected-records"
import { covering } from "./sending-domains"
import { type DkimAlgorithm, type DkimState, dkimKeys, domains } from "./tables"

const RSA_BITS = 2048

/** What follows the selector of the RSA key in that of the Ed25519 key made with it. */
export const ED25519_SUFFIX = "-ed"

/** A key that is not stored yet. It is made before the transaction, off the event loop. */
export interface MadeKey {
  algorithm: DkimAlgorithm
  pem: string
  public_key: string
}

/** A pair of each algorithm. RSA takes some tenths of a second of a thread. */
export async function makeKeys(): Promise<MadeKey[]> {
  const rsa = await pairOf((done) => generateKeyPair("rsa", { modulusLength: RSA_BITS }, done))
  const ed25519 = await pairOf((done) => generateKeyPair("ed25519", {}, done))
  return [made("rsa", rsa), made("ed25519", ed25519)]
}

type Done = (error: Error | null, publicKey: KeyObject, privateKey: KeyObject) => void

/** The callback form, which works in a thread of the runtime. */
const pairOf = (generate: (done: Done) => void): Promise<Pair> =>
  new Promise((resolve, reject) => {
    generate((error, publicKey, privateKey) => {
      if (error) reject(error)
      else resolve({ publicKey, privateKey })
    })
  })

interface Pair {
  privateKey: KeyObject
  publicKey: KeyObject
}

/** RFC 6376 3.6.1: the whole SubjectPublicKeyInfo of RSA; RFC 8463 4.2: the bare 32 bytes. */
function made(algorithm: DkimAlgorithm, { privateKey, publicKey }: Pair): MadeKey {
  const pem = privateKey.export({ type: "pkcs8", format: "pem" }).toString()
  const spki = publicKey.export({ type: "spki", format: "der" })
  const bytes = algorithm === "rsa" ? spki : spki.subarray(-32)
  return { algorithm, pem, public_key: bytes.toString("base64") }
}

/** The selector of one key of a pair, by that of the pair. */
export const selectorOf = (algorithm: DkimAlgorithm, selector: string) =>
  algorithm === "rsa" ? selector : `${selector}${ED25519_SUFFIX}`

export interface KeyOwner {
  project_id: string
  domain_id: string
}

/** The rows of a pair under one selector; Ed25519 waits until its record is seen. */
export const keyRows = (
  secrets: Secrets,
  owner: KeyOwner,
  keys: MadeKey[],
  { selector, state }: { selector: string; state: DkimState },
): KeyRow[] =>
  keys.map(({ algorithm, pem, public_key }) => {
    const id = newId()
    return {
      id,
      ...owner,
      selector: selectorOf(algorithm, selector),
      algorithm,
      private_key: secrets.seal(pem, keyContext(id)),
      public_key,
      state: algorithm === "rsa" ? state : "pending",
      seen_at: null,
      retire_at: null,
      created_at: now(),
    }
  })

const keyContext = (id: string) => `dkim_keys:${id}:private_key`

/** Every key of a domain, oldest first. */
export const keysOf = (db: Reader, domain_id: string): Promise<KeyRow[]> =>
  db.select().from(dkimKeys).where(eq(dkimKeys.domain_id, domain_id)).orderBy(asc(dkimKeys.id))

/** 32 hexadecimal digits. */
export const newToken = () => randomBytes(16).toString("hex")

/** A rotated key's record stays for days, so another node may sign with it a little longer. */
const TRUSTED_MS = 1000

export interface OpenedKey {
  /** The tag `d=`: the domain of `from`, or the verified domain above it. */
  domain: string
  selector: string
  algorithm: DkimAlgorithm
  /** PKCS #8 PEM. */
  private_key: string
}

/** By project and name. On Postgres a domain without keys may be verified any moment. */
const opened = cached<OpenedKey[]>({
  tables: ["domains", "dkim_keys"],
  most: 1000,
  keeps: (keys, db) => db.isAlone || keys.length > 0,
})

/**
 * The opened keys that sign mail from this name: the published keys of its verified domain. For mail
 * of the instance itself `project_id` is null, and the project that verified the domain is used. Empty
 * for a name without a verified domain, for example one of `sending_domains`: its mail leaves unsigned.
 * Throws SecretError when another master key sealed the keys. Every delivery calls it, so it answers
 * from memory while nothing changes (on Postgres for a second).
 */
export async function signingKeys(
  db: Reader,
  secrets: Secrets,
  project_id: string | null,
  name: string,
): Promise<OpenedKey[]> {
  const read = () => openKeys(db, secrets, project_id, name)
  return opened(db, `${project_id} ${name}`, read, TRUSTED_MS)
}

async function openKeys(db: Reader, secrets: Secrets, project_id: string | null, name: string) {
  const [anybody] = project_id === null ? await findVerified(db, { domain: name }) : []
  const owner = project_id === null ? anybody : await covering(db, project_id, name)
  if (owner?.status !== "verified") return []
  const rows = await findActive(db, { domain_id: owner.id })
  return rows.map(({ id, selector, algorithm, private_key }) => ({
    domain: owner.domain,
    selector,
    algorithm,
    private_key: secrets.open(private_key, keyContext(id)),
  }))
}

/** The caller knows the domain to be the project's. */
const findActive = prepared({ domain_id: dkimKeys.domain_id }, (db: Reader, slot) =>
  db
    .select()
    .from(dkimKeys)
    .where(and(eq(dkimKeys.domain_id, slot.domain_id), eq(dkimKeys.state, "active")))
    .orderBy(asc(dkimKeys.id)),
)

const findVerified = prepared({ domain: domains.domain }, (db: Reader, slot) =>
  db
    .select({ id: domains.id, domain: domains.domain, status: domains.status })
    .from(domains)
    .where(and(eq(domains.domain, slot.domain), eq(domains.status, "verified")))
    .limit(1),
)
