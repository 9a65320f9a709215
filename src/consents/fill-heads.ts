import { asc, gt } from "drizzle-orm"
import { untilDone } from "../store/in-steps"
import type { Store, Tx } from "../store/store"
import {
  type ChainOwner,
  COMPLETE,
  type HeadSecrets,
  headRow,
  noteSealed,
  sealedUpTo,
} from "./chain-heads"
import { lastOf } from "./consents"
import { consentHeads, consents } from "./tables"

/** Records of one transaction. */
const AT_ONCE = 100

/**
 * Gives heads to the chains that an older version wrote, and to all of them after the master key was lost. It
 * goes on where the last process stopped, and after an error `again_ms` later. The returned function ends it.
 */
export const keepSealed = (
  store: Store,
  secrets: HeadSecrets,
  again_ms?: number,
): (() => Promise<void>) =>
  untilDone(() => sealSome(store, secrets), {
    failed: "the ends of consent chains could not be sealed",
    again_ms,
  })

/** One step. Returns whether more is left. */
export async function sealSome(store: Store, secrets: HeadSecrets): Promise<boolean> {
  if ((await sealedUpTo(store.read, secrets)) === COMPLETE) return false
  return store.tx((tx) => fill(tx, secrets))
}

async function fill(tx: Tx, secrets: HeadSecrets): Promise<boolean> {
  const sealed = await sealedUpTo(tx, secrets)
  if (sealed === COMPLETE) return false
  const { id, project_id, subscriber_id, address } = consents
  const rows = await tx
    .select({ id, project_id, subscriber_id, address })
    .from(consents)
    .where(sealed === undefined ? undefined : gt(id, sealed))
    .orderBy(asc(id))
    .limit(AT_ONCE)
  for (const owner of rows) await addHead(tx, secrets, owner)
  await noteSealed(tx, secrets, rows.at(-1)?.id ?? COMPLETE)
  return rows.length > 0
}

/** A head that is there stays: it came with a record. */
async function addHead(tx: Tx, secrets: HeadSecrets, owner: ChainOwner): Promise<void> {
  const [last] = await lastOf(tx, owner)
  if (last === undefined) return
  await tx
    .insert(consentHeads)
    .values(headRow(secrets, owner, last))
    .onConflictDoNothing()
}
