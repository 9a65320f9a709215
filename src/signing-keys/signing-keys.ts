import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from "node:crypto"
import { and, eq, inArray } from "drizzle-orm"
import { fail } from "../core/errors"
import { newId } from "../core/ids"
import type { Secrets } from "../core/secrets"
import { millis, millisFrom, now } from "../core/time"
import { projects } from "../identity/tables"
import type { ProvingKey } from "../lib/signed-token"
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

type KeyRow = typeof signingKeys.$inferSelect

/** A key with both halves. */
interface TokenSigner {
  kid: string
  private_key: KeyObject
}

/**
 * The key that signs the project's tokens now. The first one is made here, and a new one
 * when the last one has signed for 90 days. Throws 404 where there is no such project any more.
 */
export async function signerOf(
  store: Store,
  secrets: Secrets,
  project_id: string,
): Promise<TokenSigner> {
  const known = signing(await keysOf(store.read, project_id))
  const row = known ?? (await store.tx((tx) => makeOnce(tx, secrets, project_id)))
  const pem = secrets.open(row.private_key, contextOf(row.id))
  return { kid: row.id, private_key: createPrivateKey(pem) }
}

/** The public half of a key whose tokens may still be valid; undefined for any other id. */
export async function provingKey(
  db: Reader,
  project_id: string,
  kid: string,
): Promise<ProvingKey | undefined> {
  const row = published(await keysOf(db, project_id)).find((one) => one.id === kid)
  if (!row) return undefined
  return { kid, public_key: createPublicKey({ key: { ...row.public_key }, format: "jwk" }) }
}

/** The keys by which the project's tokens are verified (RFC 7517, section 4): none where it never made one. */
export const publishedKeys = async (db: Reader, project_id: string) =>
  published(await keysOf(db, project_id)).map(({ id, public_key: { kty, crv, x } }) => {
    return { kty, crv, x, kid: id, alg: "EdDSA", use: "sig" }
  })

/** Two nodes at once make one key, because the second one waits for the project. */
async function makeOnce(tx: Tx, secrets: Secrets, project_id: string): Promise<KeyRow> {
  const project = await rowForUpdate(tx, projects, project_id)
  if (!project) return fail("not_found", "There is no such project.")
  const rows = await keysOf(tx, project_id)
  const known = signing(rows)
  if (known) return known
  const fresh = published(rows)
  const over = rows.filter((row) => !fresh.includes(row)).map(({ id }) => id)
  const mine = eq(signingKeys.project_id, project_id)
  if (over.length > 0) await tx.delete(signingKeys).where(and(mine, inArray(signingKeys.id, over)))
  const row = newKey(secrets, project_id)
  await tx.insert(signingKeys).values(row)
  return row
}

function newKey(secrets: Secrets, project_id: string): KeyRow {
  const id = newId()
  const { privateKey, publicKey } = generateKeyPairSync("ed25519")
  const pem = privateKey.export({ type: "pkcs8", format: "pem" }).toString()
  return {
    id,
    project_id,
    application_id: null,
    use: "inbox",
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
const keysOf = async (db: Reader, project_id: string) =>
  remembered(db, project_id, () => findKeys(db, { project_id }))

const findKeys = prepared({ project_id: signingKeys.project_id }, (db: Reader, slot) =>
  db
    .select()
    .from(signingKeys)
    .where(eq(signingKeys.project_id, slot.project_id))
    .orderBy(signingKeys.id),
)
