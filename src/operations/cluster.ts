import { eq, ne, sql } from "drizzle-orm"
import { log } from "../core/log"
import { events } from "../events/tables"
import { engine } from "../store/columns"
import { initialize, set } from "../store/instance-values"
import { held } from "../store/locks"
import type { Reader, Store } from "../store/store"
import { instanceValues } from "../store/tables"

const CLUSTER = "postgres_cluster"

/**
 * An event's position is the number of its transaction, which only the cluster that gave it can
 * count on from. After a restore into another one (or another database) new numbers may be lower
 * than old ones: then what is there already is put before everything that comes.
 */
export async function followCluster(store: Store): Promise<void> {
  if (engine === "sqlite") return
  const here = await identityOf(store.read)
  if (here === undefined) return
  const left = await store.tx(async (tx) => {
    const mine = eq(instanceValues.name, CLUSTER)
    await initialize(tx, CLUSTER, here)
    const [kept] = await held(tx.select().from(instanceValues).where(mine))
    if (!kept || kept.value === here) return undefined
    await tx.update(events).set({ position: 0 }).where(ne(events.position, 0))
    await set(tx, CLUSTER, here)
    return kept.value
  })
  if (left)
    log.warn("the data moved to another Postgres server; events from before the move come first", {
      left,
      here,
    })
}

/** `undefined` where the server does not tell, which some that only speak like Postgres do not. */
async function identityOf(db: Reader): Promise<string | undefined> {
  const system = sql<string>`system_identifier::text`
  const database = sql<string>`(SELECT oid::text FROM pg_database WHERE datname = current_database())`
  try {
    const [row] = await db.select({ system, database }).from(sql`pg_control_system()`)
    return row && `${row.system}/${row.database}`
  } catch (error) {
    log.warn(
      "this Postgres server does not tell its identity; a move to another server cannot be noticed",
      { error },
    )
    return undefined
  }
}
