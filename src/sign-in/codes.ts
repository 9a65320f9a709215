import { randomInt, timingSafeEqual } from "node:crypto"
import { and, eq, gt, isNull, lt, type SQL, sql } from "drizzle-orm"
import type { SQLiteColumn } from "drizzle-orm/sqlite-core"
import { newId } from "../core/ids"
import type { Secrets } from "../core/secrets"
import { now, secondsFromNow } from "../core/time"
import type { Store, Tx } from "../store/store"
import { kitTable, type OwnColumns, type OwnerTable } from "./owner-tables"
import type { codeColumns } from "./person-columns"

const DIGITS = 6
const MOST_TRIES = 5

type CodeColumns = ReturnType<typeof codeColumns>
export type CodeTable = OwnerTable<CodeColumns>

/** Where codes of an owner live. In one place, which these columns name, works one code at a time. */
export interface CodeOwner<Table extends CodeTable> {
  secrets: Secrets
  table: Table
  place: (table: Table) => SQLiteColumn[]
}

/** Whether a code may pass, and if not, why. */
export type CodeVerdict<Row> =
  | { verdict: "right"; row: Row }
  | { verdict: "wrong" | "expired" | "used_up" }

/**
 * Six digits that work once and for some seconds. What was in the place before works no more. How
 * often somebody may guess at one place is a bucket of the throttle: here each code counts anew.
 */
export async function issueCode<Table extends CodeTable>(
  tx: Tx,
  { secrets, table, place }: CodeOwner<Table>,
  { seconds, code = newCode() }: { seconds: number; code?: string },
  columns: OwnColumns<Table, keyof CodeColumns>,
): Promise<string> {
  const id = newId()
  const row = {
    ...columns,
    id,
    code_hash: hashOfCode(secrets, id, code).toString("base64url"),
    attempts: 0,
    used_at: null,
    created_at: now(),
    expires_at: secondsFromNow(seconds),
  }
  const codes = kitTable<CodeColumns>(table)
  await tx
    .insert(codes)
    .values(row)
    .onConflictDoUpdate({ target: place(table), set: row })
  return code
}

/** A code that `issueCode` may be given, where it is mailed before it is stored. */
export const newCode = () => String(randomInt(10 ** DIGITS)).padStart(DIGITS, "0")

/** Under a key of the instance: a million codes could be tried out from a stolen database. */
const hashOfCode = (secrets: Secrets, id: string, code: string) =>
  secrets.mac("code", `${id}:${code}`)

/**
 * Looks at a code for the place that `which` selects. The try is counted before, in a transaction of
 * its own, so that guesses side by side are counted too. `takeCode` uses up a right one.
 */
export async function tryCode<Table extends CodeTable>(
  store: Store,
  { secrets, table }: Pick<CodeOwner<Table>, "secrets" | "table">,
  which: SQL | undefined,
  code: string,
): Promise<CodeVerdict<Table["$inferSelect"]>> {
  const codes = kitTable<CodeColumns>(table)
  const open = and(which, isNull(codes.used_at), gt(codes.expires_at, now()))
  const { found, row } = await store.tx(async (tx) => {
    const counting = tx.update(codes).set({ attempts: sql`${codes.attempts} + 1` })
    const [row] = await counting.where(and(open, lt(codes.attempts, MOST_TRIES))).returning()
    const [found] = row ? [row] : await tx.select().from(codes).where(open)
    return { found, row }
  })
  if (!row) return { verdict: found ? "used_up" : "expired" }
  const is_right = timingSafeEqual(
    Buffer.from(row.code_hash, "base64url"),
    hashOfCode(secrets, row.id, code.trim()),
  )
  return is_right ? { verdict: "right", row } : { verdict: "wrong" }
}

/**
 * Uses up the code that `tryCode` found right. False where another request did, and where a newer code
 * took its place.
 */
export async function takeCode(tx: Tx, table: CodeTable, { id }: { id: string }): Promise<boolean> {
  const codes = kitTable<CodeColumns>(table)
  const mine = and(eq(codes.id, id), isNull(codes.used_at))
  const taken = await tx.update(codes).set({ used_at: now() }).where(mine).returning()
  return taken.length > 0
}
