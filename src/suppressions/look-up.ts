import { and, eq, sql } from "drizzle-orm"
import { isPast } from "../core/time"
import { gathered } from "../store/batcher"
import { cached } from "../store/cached"
import { isAmongTexts, textList } from "../store/columns"
import { prepared } from "../store/statements"
import type { Reader } from "../store/store"
import {
  SUPPRESSED_CHANNELS,
  type SuppressionChannel,
  type SuppressionRow,
  suppressions,
} from "./tables"

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

/** Whether a project suppresses any address, so that the sends of the others ask nothing. */
const anySuppressed = cached<boolean>({ tables: ["suppressions"] })

/**
 * Whether a project has suppressions. With `recent` the answer on Postgres may be a second old, so what
 * it lets pass is asked again, without it, before the message leaves.
 */
export const hasSuppressions = (
  db: Reader,
  owner: string,
  { recent = false } = {},
): boolean | Promise<boolean> =>
  anySuppressed(db, owner, () => findsAny(db, owner), recent ? TRUSTED_MS : 0)

/** Whether addresses of the channel can be suppressed. */
export const hasAddressesToSuppress = (channel: string): channel is SuppressionChannel =>
  (SUPPRESSED_CHANNELS as readonly string[]).includes(channel)

interface SuppressionOwner {
  project_id: string
  channel: string
}

/** Which of the addresses (in comparable form) may get no message of this kind. */
export async function suppressedAmong(
  db: Reader,
  { project_id, channel }: SuppressionOwner,
  addresses: readonly string[],
  scope: MailScope = {},
): Promise<Suppressed> {
  if (!hasAddressesToSuppress(channel)) return NOBODY
  // On Postgres only the rows themselves can tell, and asking for them costs as much.
  if (db.isAlone && !(await hasSuppressions(db, project_id))) return NOBODY
  return amongRows(await unexpired(db, project_id, channel, addresses), scope)
}

/** Every suppression of these addresses that has not expired. */
export async function unexpired(
  db: Reader,
  project_id: string,
  channel: SuppressionChannel,
  addresses: readonly string[],
): Promise<SuppressionRow[]> {
  const rows = await (db.isAlone ? inProject : together)(db, { project_id, channel, addresses })
  return rows.filter(({ expires_at }) => expires_at === null || !isPast(expires_at))
}

interface AddressesQuery {
  project_id: string
  channel: SuppressionChannel
  addresses: readonly string[]
}

function inProject(db: Reader, { addresses, ...of }: AddressesQuery): Promise<SuppressionRow[]> {
  const [only] = addresses
  if (only === undefined) return NONE
  return addresses.length === 1
    ? findOne(db, { ...of, address: only })
    : findSome(db, { ...of, ids: addresses })
}

const NONE: Promise<SuppressionRow[]> = Promise.resolve([])

/** On Postgres what several messages ask at once is one round trip. */
const together = gathered<AddressesQuery, SuppressionRow[]>(async (db, asked) => {
  const places = asked.flatMap(({ project_id, channel, addresses }) =>
    addresses.map((address) => ({ project_id, channel, address })),
  )
  if (places.length === 0) return asked.map(() => [])
  const rows = await findPlaces(db, { ids: places as never })
  const found = Map.groupBy(rows, placeOf)
  return asked.map(({ addresses, ...of }) =>
    [...new Set(addresses)].flatMap((address) => found.get(placeOf({ ...of, address })) ?? []),
  )
})

type Position = Pick<SuppressionRow, "project_id" | "channel" | "address">

const placeOf = ({ project_id, channel, address }: Position) =>
  [project_id, channel, address].join()

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

async function findsAny(db: Reader, project_id: string): Promise<boolean> {
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

const findPlaces = prepared({ ids: textList }, (db: Reader, slot) =>
  db
    .select()
    .from(suppressions)
    .where(
      sql`(${project_id}, ${channel}, ${address}) IN (SELECT asked.project_id, asked.channel, asked.address
        FROM jsonb_to_recordset((${slot.ids})::text::jsonb) AS asked(project_id uuid, channel text, address text))`,
    ),
)
