import { and, eq } from "drizzle-orm"
import { routing } from "../providers/open-providers"
import { refusedReturnPaths } from "../providers/refused-return-paths"
import type { Reader } from "../store/store"
import { returnPathHost } from "./return-path"
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
  /** The host where reports arrive; undefined where none takes them. */
  reports_host: string | undefined
  /** What the relay of the project said of that host as envelope sender, where it refused it. */
  refusal: string | undefined
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
  if (!row) return undefined
  const reports_host = await returnPathHost(db, project_id, name)
  const [first] = await routing(db, "email_provider", project_id)
  const refusal = first && reports_host && refusedReturnPaths(first)[reports_host]
  return { ...row, return_path: `${row.return_path}.${row.domain}`, reports_host, refusal }
}
