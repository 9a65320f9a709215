import { and, eq, gt, isNull, type SQL } from "drizzle-orm"
import { now, secondsFromNow } from "../core/time"
import type { Reader, Tx } from "../store/store"
import { kitTable, type OwnColumns, type OwnerTable } from "./owner-tables"
import type { linkColumns } from "./person-columns"
import { hashOfToken, newToken, type TokenKind } from "./tokens"

type LinkColumns = ReturnType<typeof linkColumns>
export type LinkTable = OwnerTable<LinkColumns>

/** A token that works once and for some seconds. Its link is mailed; only its hash is stored. */
export async function issueLink<Table extends LinkTable>(
  tx: Tx,
  table: Table,
  { kind, seconds, token = newToken(kind) }: { kind: TokenKind; seconds: number; token?: string },
  columns: OwnColumns<Table, keyof LinkColumns>,
): Promise<string> {
  const expires_at = secondsFromNow(seconds)
  const row = { token_hash: hashOfToken(token), used_at: null, created_at: now(), expires_at }
  await tx.insert(kitTable<LinkColumns>(table)).values({ ...columns, ...row })
  return token
}

/** The row of a token that still works, and that `among` selects. Changes nothing. */
export async function openLink<Table extends LinkTable>(
  db: Reader,
  table: Table,
  token: string,
  among?: SQL,
): Promise<Table["$inferSelect"] | undefined> {
  const links = kitTable<LinkColumns>(table)
  const [row] = await db
    .select()
    .from(links)
    .where(isOpen(links, token, among))
  return row
}

/** As `openLink`, and from now on the token works no more. Of two at once, one gets the row. */
export async function takeLink<Table extends LinkTable>(
  tx: Tx,
  table: Table,
  token: string,
  among?: SQL,
): Promise<Table["$inferSelect"] | undefined> {
  const links = kitTable<LinkColumns>(table)
  const taking = tx
    .update(links)
    .set({ used_at: now() })
    .where(isOpen(links, token, among))
  const [row] = await taking.returning()
  return row
}

/** The links that `which` selects work no more. */
export async function closeLinks(tx: Tx, table: LinkTable, which: SQL | undefined): Promise<void> {
  const links = kitTable<LinkColumns>(table)
  await tx
    .update(links)
    .set({ used_at: now() })
    .where(and(which, isNull(links.used_at)))
}

const isOpen = (links: LinkTable, token: string, among: SQL | undefined) =>
  and(
    among,
    eq(links.token_hash, hashOfToken(token)),
    isNull(links.used_at),
    gt(links.expires_at, now()),
  )
