import { expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { newId } from "../../src/core/ids"
import { millis, secondsFromNow } from "../../src/core/time"
import type { FeedPosition } from "../../src/events/feed"
import { events } from "../../src/events/tables"
import { DEAD, HELD, LEASED, OVER, READY } from "../../src/jobs/work-item"
import type { Store, Tx } from "../../src/store/store"
import { purgeDeliveries, purgeEvents } from "../../src/webhooks/retention"
import { deliveries } from "../../src/webhooks/tables"
import { addProject } from "../harness/project-rows"
import { testStore } from "../harness/store"
import { sampleRow } from "../harness/table-rows"

const DAY = 86_400

/** An id of some days ago. */
const idOf = (days: number) => Bun.randomUUIDv7("hex", millis() - days * DAY * 1000)

async function addEvents(store: Store, project_id: string, many: number, state?: number) {
  const ids = Array.from({ length: many }, () => `evt_${idOf(40)}`)
  await store.tx(async (tx) => {
    for (const id of ids) {
      await tx.insert(events).values(sampleRow(events, { project_id, id }) as never)
      if (state === undefined) continue
      const row = sampleRow(deliveries, { project_id, id: idOf(40), event_id: id, state })
      await tx.insert(deliveries).values(row as never)
    }
  })
  return ids
}

/** All steps of one sweep. */
async function purge(store: Store, project_id: string) {
  const old = { project_id, before: secondsFromNow(-30 * DAY) }
  let place: FeedPosition | undefined
  do place = await purgeEvents(store, old, place)
  while (place)
}

const left = async (store: Store, project_id: string) => {
  const rows = store.read.select({ id: events.id }).from(events)
  return (await rows.where(eq(events.project_id, project_id))).map(({ id }) => id).sort()
}

test("old events go, but for those that an open delivery needs", async () => {
  await using it = await testStore()
  const { store } = it
  const { project_id } = await addProject(store)
  const open: string[] = []
  for (const state of [READY, LEASED, HELD]) {
    open.push(...(await addEvents(store, project_id, 2, state)))
  }
  for (const state of [OVER, DEAD, undefined]) await addEvents(store, project_id, 2, state)
  await purge(store, project_id)
  expect(await left(store, project_id)).toEqual(open.sort())
})

test("more events with open deliveries than one step looks at keep no other event", async () => {
  await using it = await testStore()
  const { store } = it
  const { project_id } = await addProject(store)
  const open = await addEvents(store, project_id, 501, READY)
  await addEvents(store, project_id, 3)
  await purge(store, project_id)
  expect(await left(store, project_id)).toEqual(open.sort())
})

test("a delivery that is asked for again while it is about to go stays", async () => {
  await using it = await testStore()
  const { store } = it
  const { project_id } = await addProject(store)
  const [webhook_id, id] = [newId(), idOf(40)]
  const event_id = `evt_${idOf(40)}`
  const row = sampleRow(deliveries, { project_id, webhook_id, id, event_id, state: DEAD })
  await store.tx((tx) => tx.insert(deliveries).values(row as never))
  const again = (tx: Tx) => tx.update(deliveries).set({ state: READY }).where(eq(deliveries.id, id))
  const interrupted: Store = Object.create(store, {
    tx: {
      value: async (work: Parameters<Store["tx"]>[0]) => {
        await store.tx(again)
        return store.tx(work)
      },
    },
  })
  await purgeDeliveries(interrupted, webhook_id, secondsFromNow(-30 * DAY))
  expect(await store.read.select({ id: deliveries.id }).from(deliveries)).toEqual([{ id }])
})
