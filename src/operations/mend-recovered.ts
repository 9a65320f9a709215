import { forgetSealed } from "../consents/chain-heads"
import { load } from "../messages/change"
import { abandon } from "../messages/settle"
import { bump } from "../store/counters"
import type { Store } from "../store/store"
import { rebuildPlaces } from "../subscribers/rebuild-places"
import { startRouting } from "../webhooks/route-events"
import { countAll } from "../webhooks/totals"
import type { CounterOwner } from "./counted-rows"
import { leaveFolder } from "./database-mark"
import { allOwners, type BrokenInvariant, brokenInAccount, brokenInProject } from "./invariants"
import { makePlaceholders, type Placeholder } from "./lost-owners"
import { wrongTotals } from "./webhook-totals"

/** What was put right in a recovered database. */
export interface MendedDatabase {
  counters: number
  /** Messages that waited and whose content is lost. They have failed, with an event. */
  without_content: number
}

/**
 * Makes a recovered database one to work with: every row has a project, subscribers are found by their words and tags, counters equal
 * their rows again, messages whose content is lost have failed, and the next start holds what is open, in
 * whichever folder.
 */
export async function mendRecovered(
  store: Store,
  onPlaceholder: (placeholder: Placeholder) => void = () => {},
): Promise<MendedDatabase> {
  const mended = { counters: 0, without_content: 0 }
  startRouting() // endpoints hear of the messages that fail here
  for (const placeholder of await makePlaceholders(store)) onPlaceholder(placeholder)
  await rebuildPlaces(store) // before the counters, because some count tags
  for (const kind of ["project", "account"] as const) {
    for await (const id of allOwners(store.read, kind)) {
      // The counters come last, so that they count what has failed before.
      for await (const { name, id: place, counter } of brokenOf(store, kind, id)) {
        if (name === "I1" && place !== null && (await failWithoutContent(store, place)))
          mended.without_content += 1
        if (!counter) continue
        await store.tx((tx) => bump(tx, id, counter.name, counter.counted - counter.told))
        mended.counters += 1
      }
      if (kind === "project") mended.counters += await mendTotals(store, id)
    }
  }
  await store.tx(async (tx) => {
    await leaveFolder(tx)
    await forgetSealed(tx) // the next start seals the consent chains that lost their heads
  })
  return mended
}

async function mendTotals(store: Store, project_id: string): Promise<number> {
  let mended = 0
  for await (const { webhook_id, told, counted } of wrongTotals(store.read, project_id, NO_PAUSE)) {
    const missing = {
      deliveries: counted.deliveries - told.deliveries,
      open: counted.open - told.open,
      held: counted.held - told.held,
    }
    await store.tx((tx) => countAll(tx, [{ project_id, webhook_id, ...missing }]))
    mended += 1
  }
  return mended
}

const NO_PAUSE = async () => {}

/** One after the other: there may be as many as messages. Nothing else writes meanwhile. */
function brokenOf(store: Store, kind: CounterOwner, id: string): AsyncGenerator<BrokenInvariant> {
  const look = {
    ...{ db: store.read, pause: NO_PAUSE, since: null, overdue_before: null },
    is_thorough: true,
  }
  return (kind === "project" ? brokenInProject : brokenInAccount)(look, id)
}

const LOST = "The content of the message was lost when the database was damaged."

const failWithoutContent = (store: Store, id: string): Promise<boolean> =>
  store.tx(async (tx) => {
    const message = await load(tx, id)
    if (message) await abandon(tx, message, "content_lost", LOST)
    return message !== undefined
  })
