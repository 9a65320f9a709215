import { and, eq, isNull, ne, sql } from "drizzle-orm"
import { log } from "../core/log"
import type { Secrets } from "../core/secrets"
import { rawSqlite } from "../store/statements"
import type { Store, Tx } from "../store/store"
import { sealHeaders } from "./custom-headers"
import { webhooks } from "./tables"

const AT_ONCE = 100

/** No custom header was sealed yet, and there are some: as an earlier version left it. */
const inClear = and(isNull(webhooks.sealed_headers), ne(sql`${webhooks.headers}`, "{}"))

/**
 * Seals the custom headers that an earlier version stored in clear. SQLite overwrites the old bytes,
 * so that they are not left in free space of the file.
 */
export async function sealStoredHeaders(store: Store, secrets: Secrets): Promise<void> {
  const [found] = await store.read
    .select({ id: webhooks.id })
    .from(webhooks)
    .where(inClear)
    .limit(1)
  if (!found) return // almost every start
  let sealed = 0
  for (;;) {
    const done = await store.tx((tx) => overwriting(tx, () => sealSome(tx, secrets)))
    sealed += done
    if (done < AT_ONCE) break
  }
  if (sealed > 0) log.info("stored custom headers of webhooks were encrypted", { webhooks: sealed })
}

async function sealSome(tx: Tx, secrets: Secrets): Promise<number> {
  const { id, headers } = webhooks
  const rows = await tx.select({ id, headers }).from(webhooks).where(inClear).limit(AT_ONCE)
  for (const row of rows) {
    const columns = sealHeaders(secrets, row.id, row.headers)
    await tx
      .update(webhooks)
      .set(columns)
      .where(and(eq(id, row.id), inClear))
  }
  return rows.length
}

async function overwriting<Result>(tx: Tx, run: () => Promise<Result>): Promise<Result> {
  const database = rawSqlite.get(tx)
  database?.run("PRAGMA secure_delete = ON")
  try {
    return await run()
  } finally {
    database?.run("PRAGMA secure_delete = OFF")
  }
}
