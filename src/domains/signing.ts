import { and, asc, eq } from "drizzle-orm"
import type { Secrets } from "../core/secrets"
import { cached } from "../store/cached"
import { prepared } from "../store/statements"
import type { Reader } from "../store/store"
import { keyContext } from "./keys"
import { covering } from "./sending-domains"
import { type DkimAlgorithm, dkimKeys, domains } from "./tables"

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
