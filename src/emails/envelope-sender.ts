import { and, eq } from "drizzle-orm"
import { settings } from "../core/config"
import type { Secrets } from "../core/secrets"
import { covering } from "../domains/sending-domains"
import { domains } from "../domains/tables"
import { readReturnPath, returnPath } from "../lib/return-path"
import type { Message } from "../messages/facts"
import { prepared } from "../store/statements"
import type { Reader } from "../store/store"

const PURPOSE = "return path"

/**
 * Where reports about a message are to go: an address of its own (VERP) at the return path of the
 * sending domain while its MX record is there, else at the host of this instance; with neither, the
 * author's own address.
 */
export async function envelopeSender(
  db: Reader,
  secrets: Secrets,
  { id, project_id, sender_domain, envelope }: Message,
): Promise<string> {
  const host = (await ownHost(db, project_id, sender_domain)) ?? settings()["domains.host"]
  if (host === null) return envelope?.from.email ?? ""
  return `${returnPath(id, (text) => secrets.mac(PURPOSE, text))}@${host.toLowerCase()}`
}

/** The message whose reports go to this local part, if it is one that we made. */
export const messageOf = (secrets: Secrets, local: string): string | undefined =>
  readReturnPath(local, (text) => secrets.mac(PURPOSE, text))

async function ownHost(db: Reader, project_id: string, name: string | null) {
  const row = name === null ? undefined : await covering(db, project_id, name)
  if (!row) return undefined
  const [found] = await findOne(db, { project_id, domain: row.domain })
  if (found?.records.return_path?.status !== "verified") return undefined
  return `${found.return_path}.${found.domain}`
}

const findOne = prepared(
  { project_id: domains.project_id, domain: domains.domain },
  (db: Reader, slot) =>
    db
      .select({
        domain: domains.domain,
        return_path: domains.return_path,
        records: domains.records,
      })
      .from(domains)
      .where(and(eq(domains.project_id, slot.project_id), eq(domains.domain, slot.domain))),
)
