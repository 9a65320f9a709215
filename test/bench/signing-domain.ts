import { generateKeyPairSync, randomUUID } from "node:crypto"
import { join } from "node:path"
import { bytesOfId } from "../../src/core/ids"
import { openSecrets } from "../../src/core/secrets"
import { databaseOf } from "./serving"

/** An RSA-2048 key in PKCS #8 PEM. */
export const rsaKey = (): string =>
  generateKeyPairSync("rsa", {
    modulusLength: 2048,
    publicKeyEncoding: { type: "spki", format: "pem" },
    privateKeyEncoding: { type: "pkcs8", format: "pem" },
  }).privateKey

/**
 * Writes a verified domain with an RSA-2048 key into the database of a folder that was initialised and
 * is not served: benchmarks have no name server that could vouch for it. Mail to it is taken where
 * `receiving` says so.
 */
export function addSigningDomain(folder: string, domain: string, receiving = false) {
  const secrets = openSecrets({ data_dir: join(folder, "data"), master_key: null })
  using database = databaseOf(folder)
  const owner = database.query(
    "SELECT id, account_id FROM projects WHERE id IN (SELECT project_id FROM api_keys)",
  )
  const project = owner.get() as { id: Uint8Array; account_id: Uint8Array }
  const at = Date.now()
  const [id, key_id] = [randomUUID(), randomUUID()]
  insert("domains", {
    id: bytesOfId(id),
    account_id: project.account_id,
    project_id: project.id,
    domain,
    status: "verified",
    verification_token: "none",
    receiving: Number(receiving),
    return_path: "bounce",
    records: "{}",
    provider_identity_status: "not_required",
    provider_dkim_status: "not_required",
    window_began_at: at,
    verified_at: at,
    created_at: at,
    updated_at: at,
  })
  insert("dkim_keys", {
    id: bytesOfId(key_id),
    project_id: project.id,
    domain_id: bytesOfId(id),
    selector: "svc1",
    algorithm: "rsa",
    private_key: secrets.seal(rsaKey(), `dkim_keys:${key_id}:private_key`),
    public_key: "none",
    state: "active",
    created_at: at,
  })

  function insert(table: string, row: Record<string, string | number | Uint8Array>) {
    const names = Object.keys(row)
    const holes = names.map(() => "?").join(", ")
    database.run(`INSERT INTO ${table} (${names.join(", ")}) VALUES (${holes})`, Object.values(row))
  }
}
