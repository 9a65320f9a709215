import { load } from "../messages/change"
import { abandon } from "../messages/settle"
import { bump } from "../store/counters"
import type { Store } from "../store/store"
import type { CounterOwner } from "./counted-rows"
import { leaveFolder } from "./database-mark"
import { allOwners, type BrokenInvariant, brokenInAccount, brokenInProject } from "./invariants"

/** What was put right in a recovered database. */
export interface MendedDatabase {
  counters: number
  /** Messages that waited and whose content is lost. They have failed, with an event. */
  without_content: number
}

/**
 * Makes a recovered database one to work with: counters equal their rows again, messages whose content is
 * lost have failed, and the next start holds what is open, in whichever folder.
 */
export async function mendRecovered(store: Store): Promise<MendedDatabase> {
  const mended = { counters: 0, without_content: 0 }
  for (const kind of ["project", "account"] as const) {
    for await (const id of allOwners(store.read, kind)) {
      for (const place of await brokenOf(store, kind, id)) {
        if (place.name !== "I1" || place.id === null) continue
        if (await failWithoutContent(store, place.id)) mended.without_content += 1
      }
      for (const { counter } of await brokenOf(store, kind, id)) {
        if (!counter) continue
        const { name, told, counted } = counter
        await store.tx((tx) => bump(tx, id, name, counted - told))
        mended.counters += 1
      }
    }
  }
  await store.tx(leaveFolder)
  return mended
}

/** Nothing writes meanwhile, so that every read is of one moment. */
async function brokenOf(store: Store, kind: CounterOwner, id: string): Promise<BrokenInvariant[]> {
  const look = { db: store.read, pause: async () => {}, since: null, overdue_before: null }
  return Array.fromAsync((kind === "project" ? brokenInProject : brokenInAccount)(look, id))
}

const LOST = "The content of the message was lost when the database was damaged."

const failWithoutContent = (store: Store, id: string): Promise<boolean> =>
  store.tx(async (tx) => {
    const message = await load(tx, id)
    if (message) await abandon(tx, message, "content_lost", LOST)
    return message !== undefined
  })
