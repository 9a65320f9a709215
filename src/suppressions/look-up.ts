import { and, eq } from "drizzle-orm"
import { isPast } from "../core/time"
import { cached } from "../store/cached"
import { isAmongTexts, textList } from "../store/dialect"
import { prepared } from "../store/statements"
import type { Reader } from "../store/store"
import { type SuppressionChannel, type SuppressionRow, suppressions } from "./tables"

/** What a message is, for suppressions that are not of the whole project. */
export interface MailScope {
  category?: string | null | undefined
  topic?: string | null | undefined
  broadcast?: boolean | undefined
}

/** Suppressed addresses, in comparable form, each with the suppression that counts. */
export type Suppressed = ReadonlyMap<string, SuppressionRow>

const NOBODY: Suppressed = new Map()

/** How long another node's accepts may go on believing what this one knows to have changed. */
const TRUSTED_MS = 1000

/** Whether a project suppresses anybody, so that the sends of the others ask nothing. */
const anySuppressed = cached<boolean>({ tables: ["suppressions"] })

/**
 * Which of the email addresses (in comparable form) may get no message of this kind. With `recent` the
 * answer on Postgres may miss what another node wrote within the last second. So the same is asked
 * again, without it, before the message leaves.
 */
export async function suppressedAmong(
  db: Reader,
  project_id: string,
  addresses: readonly string[],
  scope: MailScope = {},
  { recent = false } = {},
): Promise<Suppressed> {
  const asks = () => hasAny(db, project_id)
  if (recent || db.isAlone) {
    if (!(await anySuppressed(db, project_id, asks, recent ? TRUSTED_MS : 0))) return NOBODY
  }
  return amongRows(await standing(db, project_id, "email", addresses), scope)
}

/** Every suppression of these addresses that has not expired. */
export async function standing(
  db: Reader,
  project_id: string,
  channel: SuppressionChannel,
  addresses: readonly string[],
): Promise<SuppressionRow[]> {
  const [only] = addresses
  if (only === undefined) return []
  const rows =
    addresses.length === 1
      ? await findOne(db, { project_id, channel, address: only })
      : await findSome(db, { project_id, channel, ids: addresses })
  return rows.filter(({ expires_at }) => expires_at === null || !isPast(expires_at))
}

/** Those of the rows that count for a message. What holds for the whole project comes first. */
export function amongRows(rows: SuppressionRow[], scope: MailScope): Suppressed {
  const found = new Map<string, SuppressionRow>()
  for (const row of rows) {
    if (!covers(row, scope)) continue
    const known = found.get(row.address)
    if (!known || row.scope_type === "project") found.set(row.address, row)
  }
  return found
}

function covers({ scope_type, scope_key }: SuppressionRow, scope: MailScope): boolean {
  if (scope_type === "project") return true
  if (scope_type === "broadcast") return scope.broadcast === true
  return scope[scope_type] === scope_key
}

async function hasAny(db: Reader, project_id: string): Promise<boolean> {
  const [row] = await findAny(db, { project_id })
  return row !== undefined
}

const { project_id, channel, address } = suppressions

const findAny = prepared({ project_id }, (db: Reader, slot) =>
  db
    .select({ id: suppressions.id })
    .from(suppressions)
    .where(eq(project_id, slot.project_id))
    .limit(1),
)

const findOne = prepared({ project_id, channel, address }, (db: Reader, slot) =>
  db
    .select()
    .from(suppressions)
    .where(
      and(eq(project_id, slot.project_id), eq(channel, slot.channel), eq(address, slot.address)),
    ),
)

const findSome = prepared({ project_id, channel, ids: textList }, (db: Reader, slot) =>
  db
    .select()
    .from(suppressions)
    .where(
      and(
        eq(project_id, slot.project_id),
        eq(channel, slot.channel),
        isAmongTexts(db, address, slot.ids),
      ),
    ),
)
