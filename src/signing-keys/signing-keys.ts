import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from "node:crypto"
import { and, eq, inArray, isNull, type SQL } from "drizzle-orm"
import { fail } from "../core/errors"
import { newId } from "../core/ids"
import type { Secrets } from "../core/secrets"
import { millis, millisFrom, now } from "../core/time"
import { projects } from "../identity/tables"
import type { ProvingKey, TokenSigner } from "../lib/signed-token"
import { cached } from "../store/cached"
import { rowForUpdate } from "../store/rows"
import { prepared } from "../store/statements"
import type { Reader, Store, Tx } from "../store/store"
import { type PublicJwk, signingKeys } from "./tables"

const DAY_SECONDS = 86_400

/** A key signs for so long; then a new one does. */
const SIGNING_SECONDS = 90 * DAY_SECONDS

/** No token of these keys lives longer, so for so long the key is published after its last one. */
export const LONGEST_TOKEN_SECONDS = 7 * DAY_SECONDS

/** Verifiers may keep the published keys for so long. They ask at once for a `kid` that they do not know. */
export const KEPT_SECONDS = 300

type KeyRow = typeof signingKeys.$inferSelect

/** Whose tokens the keys sign: those of a project for its subscribers, or of an application for its users. */
type KeyOwner = { application_id: string } | { project_id: string }

type NewKeyOwner = KeyOwner & { project_id: string }

/**
 * The key that signs the owner's tokens now. The first one is made here, and a new one
 * when the last one has signed for 90 days. Throws 404 where there is no such project any more.
 */
export async function signerOf(
  store: Store,
  secrets: Secrets,
  owner: NewKeyOwner,
): Promise<TokenSigner> {
  const known = signing(await keysOf(store.read, owner))
  return known ? opened(secrets, known) : store.tx((tx) => signerIn(tx, secrets, owner))
}

/** As `signerOf`, in the transaction that gives out the token. */
export async function signerIn(tx: Tx, secrets: Secrets, owner: NewKeyOwner): Promise<TokenSigner> {
  const known = signing(await keysOf(tx, owner))
  return opened(secrets, known ?? (await makeOnce(tx, secrets, owner)))
}

const opened = (secrets: Secrets, { id, private_key }: KeyRow): TokenSigner => ({
  kid: id,
  private_key: createPrivateKey(secrets.open(private_key, contextOf(id))),
})

/** The public half of a key whose tokens may still be valid; undefined for any other id. */
export async function provingKey(
  db: Reader,
  owner: KeyOwner,
  kid: string,
): Promise<ProvingKey | undefined> {
  const row = published(await keysOf(db, owner)).find((one) => one.id === kid)
  if (!row) return undefined
  const public_key = parsed.get(row) ?? parse(row)
  return { kid, public_key }
}

/** Reading a key takes as long as proving a signature, and rows that are remembered stay the same. */
const parsed = new WeakMap<KeyRow, KeyObject>()

function parse(row: KeyRow): KeyObject {
  const key = createPublicKey({ key: { ...row.public_key }, format: "jwk" })
  parsed.set(row, key)
  return key
}

/** The keys by which the owner's tokens are verified (RFC 7517, section 4): none where it never made one. */
export const publishedKeys = async (db: Reader, owner: KeyOwner) =>
  published(await keysOf(db, owner)).map(({ id, use, public_key }) => {
    const { kty, crv, x, y } = public_key
    return { kty, crv, x, ...(y && { y }), kid: id, alg: KINDS[use].alg, use: "sig" }
  })

const KINDS = {
  inbox: { alg: "EdDSA", make: () => generateKeyPairSync("ed25519") },
  auth: { alg: "ES256", make: () => generateKeyPairSync("ec", { namedCurve: "P-256" }) },
} as const

/** Two nodes at once make one key, because the second one waits for the project. */
async function makeOnce(tx: Tx, secrets: Secrets, owner: NewKeyOwner): Promise<KeyRow> {
  const project = await rowForUpdate(tx, projects, owner.project_id)
  if (!project) return fail("not_found", "There is no such project.")
  const rows = await keysOf(tx, owner)
  const known = signing(rows)
  if (known) return known
  const fresh = published(rows)
  const over = rows.filter((row) => !fresh.includes(row)).map(({ id }) => id)
  const mine = eq(signingKeys.project_id, owner.project_id)
  if (over.length > 0) await tx.delete(signingKeys).where(and(mine, inArray(signingKeys.id, over)))
  const row = newKey(secrets, owner)
  await tx.insert(signingKeys).values(row)
  return row
}

function newKey(secrets: Secrets, owner: NewKeyOwner): KeyRow {
  const id = newId()
  const application_id = "application_id" in owner ? owner.application_id : null
  const use = application_id === null ? "inbox" : "auth"
  const { privateKey, publicKey } = KINDS[use].make()
  const pem = privateKey.export({ type: "pkcs8", format: "pem" }).toString()
  return {
    id,
    project_id: owner.project_id,
    application_id,
    use,
    public_key: publicKey.export({ format: "jwk" }) as PublicJwk,
    private_key: secrets.seal(pem, contextOf(id)),
    created_at: now(),
  }
}

const contextOf = (id: string) => `signing_keys:${id}:private_key`

/** The newest key that may sign now. */
const signing = (rows: KeyRow[]): KeyRow | undefined =>
  rows.findLast((row) => ageOf(row) < SIGNING_SECONDS)

/** The keys of which a token may be valid now. */
const published = (rows: KeyRow[]): KeyRow[] =>
  rows.filter((row) => ageOf(row) < SIGNING_SECONDS + LONGEST_TOKEN_SECONDS)

const ageOf = ({ created_at }: KeyRow) => (millis() - millisFrom(created_at)) / 1000

const remembered = cached<KeyRow[]>({ tables: ["signing_keys"], keeps: (rows) => rows.length > 0 })

/** Oldest first. */
const keysOf = async (db: Reader, owner: KeyOwner) =>
  "application_id" in owner
    ? remembered(db, owner.application_id, () => keysOfApplication(db, owner))
    : remembered(db, owner.project_id, () => keysOfProject(db, owner))

const keysOfProject = prepared({ project_id: signingKeys.project_id }, (db: Reader, slot) =>
  select(db, and(eq(signingKeys.project_id, slot.project_id), isNull(signingKeys.application_id))),
)

const keysOfApplication = prepared(
  { application_id: signingKeys.application_id },
  (db: Reader, slot) => select(db, eq(signingKeys.application_id, slot.application_id)),
)

const select = (db: Reader, which: SQL | undefined) =>
  db.select().from(signingKeys).where(which).orderBy(signingKeys.id)
