import { and, count, desc, eq, gt, isNull, max, ne, or, type SQL } from "drizzle-orm"
import type { SQLiteColumn, SQLiteTable } from "drizzle-orm/sqlite-core"
import { now } from "../../core/time"
import { apiKeys, consoleUsers, projects } from "../../identity/tables"
import { INSTANCE, providerConfigs } from "../../providers/tables"
import type { Reader } from "../../store/store"
import { subscribers, unsubscribes } from "../../subscribers/tables"
import { suppressions } from "../../suppressions/tables"
import { webhooks } from "../../webhooks/tables"
import { columnOf } from "../table-lives"

/** The most that a report names of one kind; it counts all of them. */
const MOST_NAMES = 20
const MOST_PROJECTS = 1000

/** What a copy lets in or sends to as it did. A later change of it is unknown to the copy. */
export type AccessKind = keyof typeof ACCESS

export interface RestoredAccess {
  kind: AccessKind
  /** What is in force again. */
  count: number
  newest_at: string | null
  /** The newest 20. An endpoint is named by its host. */
  names: string[]
}

/** Up to when the copy knows suppressions and unsubscriptions. Later ones are unknown to it. */
export interface RestoredRefusals {
  project_id: string
  project: string
  suppressions: number
  newest_suppression_at: string | null
  unsubscribes: number
  newest_unsubscribe_at: string | null
  /** Those that were erased since are back. */
  subscribers: number
}

/** What may have been revoked, suppressed or erased since the backup was made. */
export interface UnknownSince {
  access: RestoredAccess[]
  /** The first 1,000 projects. */
  refusals: RestoredRefusals[]
  projects: number
}

export async function unknownSince(db: Reader): Promise<UnknownSince> {
  const access: RestoredAccess[] = []
  for (const kind of Object.keys(ACCESS) as AccessKind[]) access.push(await accessOf(db, kind))
  return { access, ...(await refusalsOf(db)) }
}

export const isActiveKey = (): SQL | undefined =>
  and(isNull(apiKeys.revoked_at), or(isNull(apiKeys.expires_at), gt(apiKeys.expires_at, now())))

interface AccessRows {
  /** What people call one. Its table also has `created_at`. */
  name: SQLiteColumn
  which: () => SQL | undefined
  shown?: (name: string) => string
}

const ACCESS = {
  api_keys: { name: apiKeys.name, which: isActiveKey },
  people: { name: consoleUsers.email, which: () => eq(consoleUsers.status, "active") },
  webhooks: {
    name: webhooks.url,
    which: () => eq(webhooks.status, "active"),
    shown: (url) => (URL.canParse(url) ? new URL(url).host : "?"), // the rest may have a secret in it
  },
  providers: {
    name: providerConfigs.name,
    // The instance's own one is as the settings say, and not as the copy does.
    which: () => and(eq(providerConfigs.enabled, true), ne(providerConfigs.project_id, INSTANCE)),
  },
} satisfies Record<string, AccessRows>

async function accessOf(db: Reader, kind: AccessKind): Promise<RestoredAccess> {
  const { name, which, shown = (text) => text }: AccessRows = ACCESS[kind]
  const { table } = name
  const at = columnOf(table as SQLiteTable, "created_at") as SQLiteColumn
  const [all] = await db
    .select({ n: count(), newest_at: max(at) })
    .from(table)
    .where(which())
  const newest = db.select({ name }).from(table).where(which())
  const rows = await newest.orderBy(desc(at)).limit(MOST_NAMES)
  return {
    kind,
    count: Number(all?.n ?? 0),
    newest_at: (all?.newest_at as string | null | undefined) ?? null,
    names: rows.map((row) => shown(String(row.name))),
  }
}

async function refusalsOf(db: Reader): Promise<Pick<UnknownSince, "refusals" | "projects">> {
  const which = eq(projects.hidden, false)
  const [all] = await db.select({ n: count() }).from(projects).where(which)
  const some = db.select({ id: projects.id, name: projects.name }).from(projects).where(which)
  const rows = await some.orderBy(projects.id).limit(MOST_PROJECTS)
  const suppressed = await byProject(db, suppressions)
  const unsubscribed = await byProject(db, unsubscribes)
  const people = await byProject(db, subscribers)
  const refusals = rows.map(({ id, name }) => ({
    project_id: id,
    project: name,
    suppressions: suppressed(id).n,
    newest_suppression_at: suppressed(id).newest_at,
    unsubscribes: unsubscribed(id).n,
    newest_unsubscribe_at: unsubscribed(id).newest_at,
    subscribers: people(id).n,
  }))
  return { refusals, projects: Number(all?.n ?? 0) }
}

async function byProject(
  db: Reader,
  table: typeof suppressions | typeof unsubscribes | typeof subscribers,
) {
  const { project_id, created_at } = table as typeof suppressions
  const rows = await db
    .select({ project_id, n: count(), newest_at: max(created_at) })
    .from(table)
    .groupBy(project_id)
  const found = new Map(rows.map(({ project_id, ...row }) => [project_id, row]))
  return (id: string) => found.get(id) ?? { n: 0, newest_at: null }
}
