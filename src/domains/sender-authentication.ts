import { and, eq } from "drizzle-orm"
import type { Reader } from "../store/store"
import { covering } from "./sending-domains"
import { type DomainStatus, domains, type RecordChecks } from "./tables"

/** What receivers will find of the domain that speaks for a sender, as its last check saw it. */
export interface SenderAuthentication {
  /** The sender's own domain, or the one above it. */
  domain: string
  status: DomainStatus
  /** Where reports go: its SPF record speaks for the envelope sender. */
  return_path: string
  records: RecordChecks
}

/** Undefined where no domain of the project speaks for the name. */
export async function senderAuthentication(
  db: Reader,
  project_id: string,
  name: string,
): Promise<SenderAuthentication | undefined> {
  const owner = await covering(db, project_id, name)
  if (!owner) return undefined
  const { domain, status, return_path, records } = domains
  const [row] = await db
    .select({ domain, status, return_path, records })
    .from(domains)
    .where(and(eq(domains.id, owner.id), eq(domains.project_id, project_id)))
  return row && { ...row, return_path: `${row.return_path}.${row.domain}` }
}
