import { and, asc, eq } from "drizzle-orm"
import { monotonic } from "../core/time"
import { engine } from "../store/columns"
import { onChanged } from "../store/group-commit"
import type { Reader } from "../store/store"
import type { ConfigRow } from "./config-record"
import { providerConfigs } from "./tables"

const MOST_KNOWN = 10_000

/** How long another node's accepts may go on believing what this one knows to have changed. */
const TRUSTED_MS = 1000

interface Known {
  rows: ConfigRow[]
  until: number
}

let known = new WeakMap<Reader, Map<string, Known>>()

if (engine === "sqlite") {
  onChanged(["provider_configs"], forgetRouting)
}

/**
 * Who delivers the email of a project, in the order of asking: what is enabled, paused or not.
 * Empty: the instance's own. From memory where that cannot be old (SQLite) or where `recent` is
 * good enough, which is a second on Postgres.
 */
export async function emailRouting(
  db: Reader,
  project_id: string,
  { recent = false } = {},
): Promise<ConfigRow[]> {
  const memory = known.get(db) ?? new Map<string, Known>()
  known.set(db, memory) // before reading: a change meanwhile replaces it, and forgets ours
  const remembered = memory.get(project_id)
  const is_good = engine === "sqlite" || (recent && monotonic() < (remembered?.until ?? 0))
  if (remembered && is_good) return remembered.rows
  const rows = await inOrder(db, project_id)
  if (memory.size >= MOST_KNOWN) memory.clear()
  memory.set(project_id, { rows, until: monotonic() + TRUSTED_MS })
  return rows
}

/** Whether anybody delivers for these now: none of a project's own stands for the instance's. */
export const isUsable = (rows: ConfigRow[]): boolean =>
  rows.length === 0 || rows.some(({ paused_until }) => paused_until === null)

/** Forgets what is remembered of every project: for whoever has just changed a configuration. */
export function forgetRouting(): void {
  known = new WeakMap()
}

function inOrder(db: Reader, project_id: string): Promise<ConfigRow[]> {
  const { project_id: owner, kind, enabled, priority, id } = providerConfigs
  const ours = and(eq(owner, project_id), eq(kind, "email_provider"), eq(enabled, true))
  return db.select().from(providerConfigs).where(ours).orderBy(asc(priority), asc(id))
}

/** Who delivers for a project first; null where that is the instance's own. For accepting mail. */
export async function firstProvider(db: Reader, project_id: string): Promise<string | null> {
  const [first] = await emailRouting(db, project_id, { recent: true })
  return first?.provider ?? null
}
