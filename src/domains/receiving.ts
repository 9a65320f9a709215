import { and, eq, or } from "drizzle-orm"
import { withDefaults } from "../identity/caller"
import { accounts, type InboundMode, projects } from "../identity/tables"
import { cached } from "../store/cached"
import { prepared } from "../store/statements"
import type { Reader } from "../store/store"
import { organizational, upTo } from "./names"
import { domains } from "./tables"

/** A domain that takes mail, and the project that gets it. */
export interface ReceivingDomain {
  domain: string
  account_id: string
  project_id: string
  mode: InboundMode
}

/** How long another node may go on believing what this one knows to have changed. */
const TRUSTED_MS = 1000

/** By name. On Postgres a domain that takes no mail may begin to any moment. */
const known = cached<ReceivingDomain | undefined>({
  tables: ["domains", "projects", "accounts"],
  most: 10_000,
  keeps: (found, db) => db.isAlone || found !== undefined,
})

/**
 * The verified domain of this very name (A-labels, lower case) with `receiving: true`, whose project
 * and account are not being deleted. It is asked for each recipient, so it is remembered.
 */
export const receivingDomain = async (
  db: Reader,
  name: string,
): Promise<ReceivingDomain | undefined> => known(db, name, () => lookUp(db, name), TRUSTED_MS)

async function lookUp(db: Reader, name: string): Promise<ReceivingDomain | undefined> {
  const [row] = await findReceiving(db, { domain: name })
  if (!row || row.deleting_at !== null) return undefined
  const { account_id, project_id, domain, settings } = row
  return { domain, account_id, project_id, mode: withDefaults(settings).inbound.mode }
}

const findReceiving = prepared({ domain: domains.domain }, (db: Reader, slot) =>
  db
    .select({
      domain: domains.domain,
      account_id: domains.account_id,
      project_id: domains.project_id,
      settings: projects.settings,
      deleting_at: accounts.deleting_at,
    })
    .from(domains)
    .innerJoin(projects, eq(projects.id, domains.project_id))
    .innerJoin(accounts, eq(accounts.id, domains.account_id))
    .where(
      and(
        eq(domains.domain, slot.domain),
        eq(domains.status, "verified"),
        eq(domains.receiving, true),
        eq(projects.status, "active"),
      ),
    ),
)

/** Whether the name is a domain of the project or one below it, whatever its state. */
export async function isOfProject(db: Reader, project_id: string, name: string): Promise<boolean> {
  const names = upTo(name, organizational(name))
  const ours = and(
    eq(domains.project_id, project_id),
    or(...names.map((one) => eq(domains.domain, one))),
  )
  const rows = await db.select({ id: domains.id }).from(domains).where(ours).limit(1)
  return rows.length > 0
}

/** The project that verified this domain or the nearest one above it. Reports about the name are for that project. */
export async function ownerOfDomain(db: Reader, name: string) {
  for (const domain of upTo(name, organizational(name))) {
    const { account_id, project_id } = domains
    const [row] = await db
      .select({ account_id, project_id })
      .from(domains)
      .where(and(eq(domains.domain, domain), eq(domains.status, "verified")))
      .limit(1)
    if (row) return row
  }
  return undefined
}
