import { and, eq, or } from "drizzle-orm"
import { settings } from "../core/config"
import { refusedReturnPaths } from "../providers/health"
import { routing } from "../providers/routing"
import { cached } from "../store/cached"
import { prepared } from "../store/statements"
import type { Reader } from "../store/store"
import { organizational, upTo } from "./names"
import { type DomainStatus, domains, type RecordChecks } from "./tables"

/** The row that speaks for a name: its own, or that of a domain above it. */
type Covering = Awaited<ReturnType<typeof findOne>>[number]

/** How long another node may go on believing what this one knows to have changed. */
const TRUSTED_MS = 1000

/** By project and name. A yes of a second ago is believed on Postgres, a no never. */
const coverings = cached<Covering | undefined>({
  tables: ["domains"],
  keeps: (found, db) => db.isAlone || found?.status === "verified",
})

const remembered = async (db: Reader, project_id: string, name: string) =>
  coverings(db, `${project_id} ${name}`, () => covering(db, project_id, name), TRUSTED_MS)

/**
 * Whether mail may be sent from this name: it is a verified domain of the project or, with
 * `subdomains`, below one. Part of every accept, so it is cached.
 */
export async function isVerified(
  db: Reader,
  project_id: string,
  name: string,
  subdomains: boolean,
): Promise<boolean> {
  const found = await remembered(db, project_id, name)
  return found?.status === "verified" && (subdomains || found.domain === name)
}

/**
 * The host at which links of mail from this name are tracked: `tracking_subdomain` of the domain, while
 * its CNAME is verified. Null where there is none. Part of every accept of html, so it is cached.
 */
export async function trackingHost(
  db: Reader,
  project_id: string,
  name: string,
): Promise<string | null> {
  const found = await remembered(db, project_id, name)
  if (found?.status !== "verified" || found.tracking_subdomain === null) return null
  const is_ready = found.records.tracking?.status === "verified"
  return is_ready ? `${found.tracking_subdomain}.${found.domain}` : null
}

/**
 * Where people outside reach this server by the mail of a domain, without a slash at the end; undefined where nobody
 * knows that: then mail has no links of ours, because they would lead nowhere.
 */
export type PublicAddress = (
  project_id: string,
  domain: string | null,
) => Promise<string | undefined>

/** `public_url`, else the host of tracked links of the domain, while its CNAME is verified. */
export const publicAddressOf =
  (db: Reader, public_url: () => string | undefined): PublicAddress =>
  async (project_id, domain) => {
    const url = public_url()
    if (url !== undefined || domain === null) return url
    const host = await trackingHost(db, project_id, domain)
    return host === null ? undefined : `https://${host}`
  }

/** For the log, `/readyz` and `doctor` of a server without `base_url`. */
export const NO_PUBLIC_ADDRESS =
  "base_url is not set, so mail has no links of this server: it is not tracked, and it has no unsubscribe pages. Set base_url to the public https URL of this server."

/**
 * The host where reports about mail from this name arrive: that of its domain, while the MX record of its return path is
 * there, else the host of this instance; undefined with neither. `name` is null for mail of no domain of a project.
 * Every delivery asks, so it is cached.
 */
export async function returnPathHost(
  db: Reader,
  project_id: string,
  name: string | null,
): Promise<string | undefined> {
  const found = name === null ? undefined : await remembered(db, project_id, name)
  return found?.records.return_path?.status === "verified"
    ? returnPathOf(found)
    : settings()["domains.host"]?.toLowerCase()
}

const returnPathOf = ({ domain, return_path }: Covering) => `${return_path}.${domain}`

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
  const row = await covering(db, project_id, name)
  if (!row) return undefined
  const { domain, status, records } = row
  const reports_host = await returnPathHost(db, project_id, name)
  const [first] = await routing(db, "email_provider", project_id)
  const refusal = first && reports_host && refusedReturnPaths(first)[reports_host]
  return { domain, status, return_path: returnPathOf(row), records, reports_host, refusal }
}

/** The row of this name; without one, that of the nearest verified domain above it; else any. */
export async function covering(
  db: Reader,
  project_id: string,
  name: string,
): Promise<Covering | undefined> {
  const [own] = await findOne(db, { project_id, domain: name })
  if (own?.status === "verified") return own
  const above = upTo(name, organizational(name)).slice(1)
  for (const domain of above) {
    const [row] = await findOne(db, { project_id, domain })
    if (row?.status === "verified") return row
  }
  return own
}

const findOne = prepared(
  { project_id: domains.project_id, domain: domains.domain },
  (db: Reader, slot) =>
    db
      .select({
        id: domains.id,
        domain: domains.domain,
        status: domains.status,
        tracking_subdomain: domains.tracking_subdomain,
        return_path: domains.return_path,
        records: domains.records,
      })
      .from(domains)
      .where(and(eq(domains.project_id, slot.project_id), eq(domains.domain, slot.domain))),
)

type SenderReadiness = "verified" | "waiting" | "gone"

/**
 * How a name that mail was accepted from stands now: `waiting` while the records of its domain are
 * looked for, `gone` once the domain was deleted or has failed. Asks the database.
 */
export async function senderReadiness(
  db: Reader,
  project_id: string,
  name: string,
): Promise<SenderReadiness> {
  const names = upTo(name, organizational(name))
  const rows = await db
    .select({ status: domains.status })
    .from(domains)
    .where(
      and(eq(domains.project_id, project_id), or(...names.map((one) => eq(domains.domain, one)))),
    )
  if (rows.some(({ status }) => status === "verified")) return "verified"
  return rows.some(({ status }) => status === "pending") ? "waiting" : "gone"
}

/** The domain of this project with this exact name, in any state: for the details of an error. */
export async function idOf(db: Reader, project_id: string, name: string): Promise<string | null> {
  const [row] = await findOne(db, { project_id, domain: name })
  return row?.id ?? null
}
