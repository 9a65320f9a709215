import { and, eq, or } from "drizzle-orm"
import { monotonic } from "../core/time"
import { engine } from "../store/columns"
import { onChanged } from "../store/group-commit"
import { prepared } from "../store/statements"
import type { Reader } from "../store/store"
import { organizational, upTo } from "./names"
import { type DomainStatus, domains } from "./tables"

/** A row that speaks for a name: its own, or that of a domain above it. */
export interface Covering {
  id: string
  domain: string
  status: DomainStatus
}

const MOST_KNOWN = 10_000

/** How long another node may go on believing what this one knows to have changed. */
const TRUSTED_MS = 1000

interface Known {
  found: Covering | undefined
  until: number
}

/** Answers by project and name, for each database. On SQLite they hold until the table changes. */
let known = new WeakMap<Reader, Map<string, Known>>()

if (engine === "sqlite") {
  onChanged(["domains"], () => {
    known = new WeakMap()
  })
}

/**
 * Whether mail may be sent from this name: it is a verified domain of the project or, with
 * `subdomains`, below one. Part of every accept: answered from memory where nothing changed. On
 * Postgres a yes is believed for a second, a no never.
 */
export async function isVerified(
  db: Reader,
  project_id: string,
  name: string,
  subdomains: boolean,
): Promise<boolean> {
  const key = `${project_id} ${name}`
  const memory = memoryOf(db) // before reading: a change meanwhile replaces it, and forgets ours
  const remembered = memory.get(key)
  const is_fresh = remembered && (engine === "sqlite" || monotonic() < remembered.until)
  const found = is_fresh ? remembered.found : await covering(db, project_id, name)
  if (!is_fresh) {
    if (memory.size >= MOST_KNOWN) memory.clear()
    const isKept = engine === "sqlite" || found?.status === "verified"
    if (isKept) memory.set(key, { found, until: monotonic() + TRUSTED_MS })
  }
  return found?.status === "verified" && (subdomains || found.domain === name)
}

/** What accepting mail asks of domains. */
export interface SenderDomains {
  isVerified(project_id: string, name: string, subdomains: boolean): Promise<boolean>
  idOf(project_id: string, name: string): Promise<string | null>
}

export const senderDomains = (db: Reader): SenderDomains => ({
  isVerified: (project_id, name, subdomains) => isVerified(db, project_id, name, subdomains),
  idOf: (project_id, name) => idOf(db, project_id, name),
})

/** Forgets all remembered answers. Every change of a domain calls it. */
export function forget() {
  known = new WeakMap()
}

function memoryOf(db: Reader): Map<string, Known> {
  const memory = known.get(db) ?? new Map<string, Known>()
  known.set(db, memory)
  return memory
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
      .select({ id: domains.id, domain: domains.domain, status: domains.status })
      .from(domains)
      .where(and(eq(domains.project_id, slot.project_id), eq(domains.domain, slot.domain))),
)

export type SenderReadiness = "verified" | "waiting" | "gone"

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

/** A domain of this project with that very name, whatever its state: for an error's details. */
export async function idOf(db: Reader, project_id: string, name: string): Promise<string | null> {
  const [row] = await findOne(db, { project_id, domain: name })
  return row?.id ?? null
}
