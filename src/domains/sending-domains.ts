import { and, eq, or } from "drizzle-orm"
import { cached } from "../store/cached"
import { prepared } from "../store/statements"
import type { Reader } from "../store/store"
import { organizational, upTo } from "./names"
import { type DomainStatus, domains } from "./tables"

/** A row that speaks for a name: its own, or that of a domain above it. */
interface Covering {
  id: string
  domain: string
  status: DomainStatus
  /** Where its links are tracked, once the record of that name is there. */
  tracking_host: string | null
}

/** How long another node may go on believing what this one knows to have changed. */
const TRUSTED_MS = 1000

/** By project and name. A yes of a second ago is believed on Postgres, a no never. */
const coverings = cached<Covering | undefined>({
  tables: ["domains"],
  keeps: (found, db) => db.isAlone || found?.status === "verified",
})

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
  const read = () => covering(db, project_id, name)
  const found = await coverings(db, `${project_id} ${name}`, read, TRUSTED_MS)
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
  const read = () => covering(db, project_id, name)
  const found = await coverings(db, `${project_id} ${name}`, read, TRUSTED_MS)
  return found?.status === "verified" ? found.tracking_host : null
}

/** The row of this name; without one, that of the nearest verified domain above it; else any. */
export async function covering(
  db: Reader,
  project_id: string,
  name: string,
): Promise<Covering | undefined> {
  const [own] = (await findOne(db, { project_id, domain: name })).map(coveringOf)
  if (own?.status === "verified") return own
  const above = upTo(name, organizational(name)).slice(1)
  for (const domain of above) {
    const [row] = (await findOne(db, { project_id, domain })).map(coveringOf)
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
        records: domains.records,
      })
      .from(domains)
      .where(and(eq(domains.project_id, slot.project_id), eq(domains.domain, slot.domain))),
)

function coveringOf(row: Awaited<ReturnType<typeof findOne>>[number]): Covering {
  const { id, domain, status, tracking_subdomain: label, records } = row
  const is_ready = label !== null && records.tracking?.status === "verified"
  return { id, domain, status, tracking_host: is_ready ? `${label}.${domain}` : null }
}

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
