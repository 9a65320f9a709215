import { eq } from "drizzle-orm"
import { now } from "../core/time"
import { enqueue } from "../jobs/jobs"
import { PRIORITIES } from "../jobs/work"
import { short } from "../lib/text"
import { held } from "../store/locks"
import type { Store, Tx } from "../store/store"
import { INSTANCE } from "./callback-token"
import { forgetRefusal } from "./refusals"
import { type Asked, enqueueResumed, planProbe, providerProbe } from "./standing"
import { instanceRefusals } from "./tables"
import { tellBegin, tellEnd, tellStill } from "./trouble-log"

/** The same as of a project's provider, for the instance's own: all nodes share the one row. */
type Row = typeof instanceRefusals.$inferSelect

const PROBE = { config_id: INSTANCE, project_id: null }

const row = eq(instanceRefusals.id, INSTANCE)

/** Its mail waits from now on. Returns whether it did not before. */
export async function pauseInstance(tx: Tx, provider: string, why: string): Promise<boolean> {
  if (await current(tx)) return false
  const reason = short(why)
  const began = { id: INSTANCE, provider, reason, paused_until: now(), began_at: now() }
  const fresh = { ...began, probe_message_id: null }
  const added = await tx.insert(instanceRefusals).values(fresh).onConflictDoNothing().returning()
  if (added.length === 0) return false // another node was quicker, and has planned the probe
  await tx
    .update(instanceRefusals)
    .set({ paused_until: await planProbe(tx, PROBE) })
    .where(row)
  tx.afterCommit(() => {
    forgetRefusal()
    tellBegin("refuses_login", named(fresh), reason)
  })
  return true
}

/** Whether the probe planned for that time is still wanted. Holds the row, so that only one asks. */
export const isInstanceDue = async (tx: Tx, due: string): Promise<boolean> =>
  (await current(tx))?.paused_until === due

/** Plans the next probe, and says which message is the one now. */
export async function probeInstanceAgain(tx: Tx, { message_id, reason }: Asked) {
  const known = await current(tx)
  if (!known) return
  const paused_until = await planProbe(tx, PROBE)
  const change = {
    paused_until,
    probe_message_id: message_id,
    reason: short(reason ?? known.reason),
  }
  await tx.update(instanceRefusals).set(change).where(row)
  tx.afterCommit(() => {
    forgetRefusal()
    if (reason !== undefined) tellAgain(known, reason)
  })
}

/** A probe was refused: its words may have changed. */
export async function instanceRefusedAgain(tx: Tx, why: string) {
  const known = await current(tx)
  if (!known) return
  const reason = short(why)
  if (reason !== known.reason) await tx.update(instanceRefusals).set({ reason }).where(row)
  tx.afterCommit(() => {
    forgetRefusal()
    tellAgain(known, reason)
  })
}

/** It takes our login: the mail of every project that waits for it goes on. */
export async function resumeInstance(tx: Tx): Promise<void> {
  const known = await current(tx)
  if (!known) return
  await tx.delete(instanceRefusals).where(row)
  tx.afterCommit(() => {
    forgetRefusal()
    tellEnd("refuses_login", named(known), known.began_at)
  })
  await enqueueResumed(tx, null)
}

/** After a start the settings may be others: what was refused before is asked at once. */
export async function askInstanceNow(store: Store): Promise<void> {
  await store.tx(async (tx) => {
    if (!(await current(tx))) return
    const due = now()
    await tx.update(instanceRefusals).set({ paused_until: due }).where(row)
    const urgent = { payload: { ...PROBE, due }, project_id: null, priority: PRIORITIES.urgent }
    await enqueue(tx, providerProbe, urgent)
    tx.afterCommit(forgetRefusal)
  })
}

const current = async (tx: Tx): Promise<Row | undefined> =>
  (await held(tx.select().from(instanceRefusals).where(row)))[0]

const named = ({ provider }: Pick<Row, "provider">) => ({ provider, config_id: INSTANCE })

const tellAgain = (known: Row, reason: string) =>
  tellStill("refuses_login", named(known), { reason, since: known.began_at })
