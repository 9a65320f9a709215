import { and, eq } from "drizzle-orm"
import { settings } from "../core/config"
import { refusedReturnPaths } from "../providers/health"
import { routing } from "../providers/open-providers"
import { cached } from "../store/cached"
import { prepared } from "../store/statements"
import type { Reader } from "../store/store"
import { covering } from "./sending-domains"
import { type DomainStatus, domains, type RecordChecks } from "./tables"

/**
 * The host where reports about mail from this domain arrive: that of the domain, while the MX record of its return path is
 * there, else the host of this instance; undefined with neither.
 */
export async function returnPathHost(
  db: Reader,
  project_id: string,
  name: string | null,
): Promise<string | undefined> {
  const own = name === null ? undefined : await ownHost(db, project_id, name)
  return own ?? settings()["domains.host"]?.toLowerCase()
}

/** By project and name. Every delivery asks; on Postgres it is read each time. */
const ownHosts = cached<string | undefined>({ tables: ["domains"] })

const ownHost = async (db: Reader, project_id: string, name: string) =>
  ownHosts(db, `${project_id} ${name}`, () => readOwnHost(db, project_id, name))

async function readOwnHost(db: Reader, project_id: string, name: string) {
  const row = await covering(db, project_id, name)
  if (!row) return undefined
  const [found] = await findDomain(db, { project_id, domain: row.domain })
  if (found?.records.return_path?.status !== "verified") return undefined
  return `${found.return_path}.${found.domain}`
}

const findDomain = prepared(
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
