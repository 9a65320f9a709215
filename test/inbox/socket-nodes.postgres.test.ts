import { expect, test } from "bun:test"
import "../../src/channels"
import { settings } from "../../src/core/config"
import { newId } from "../../src/core/ids"
import { now } from "../../src/core/time"
import { InboxHub } from "../../src/inbox/inbox-hub"
import { InboxLedger } from "../../src/inbox/ledger"
import { markAll } from "../../src/inbox/mark-all"
import { entriesForUpdate } from "../../src/inbox/marks"
import { openStore } from "../../src/store/open"
import type { Store } from "../../src/store/store"
import { until } from "../harness/hooks"
import { idFor } from "../harness/ids"
import { quietLog } from "../harness/quiet"
import { testStore } from "../harness/store"
import { addNote } from "./notes"
import { toldSocket } from "./told-socket"

quietLog()

const PROJECT = { account_id: idFor("account_1"), project_id: idFor("project_1") }

/** A node whose hub hears nothing of the other ones. */
const deaf = (store: Store): Store =>
  Object.assign(Object.create(store), { listen: async () => {} })

/** Two nodes on one database, with a socket each of the same inbox, which are live. */
async function nodes(change: (store: Store) => Store = (store) => store) {
  const base = await testStore()
  const second = await openStore({ ...settings(), database_url: base.database_url })
  const stores = [base.store, second] as const
  const hubs = stores.map((store) => new InboxHub(change(store)))
  const stops = hubs.map((hub) => hub.start())
  const subscriber_id = newId()
  const told = await Promise.all(
    hubs.map(async (hub) => {
      const socket = toldSocket()
      await hub.join(socket, subscriber_id)
      socket.is_live = true
      return socket
    }),
  )
  // As the second step of a mark of very many messages does it.
  const readLate = (store: Store, id: string) =>
    store.tx(async (tx) => {
      const ledger = await InboxLedger.open(tx, PROJECT.project_id, [subscriber_id])
      const [entry] = await entriesForUpdate(tx, [id])
      ledger.recount(subscriber_id)
      if (entry) ledger.within(entry, { read_at: now() }, entry.seq)
      await ledger.close()
    })
  return {
    ...{ stores, hubs, told, readLate },
    send: (store: Store) => addNote({ store }, PROJECT, subscriber_id),
    readAll: (store: Store) => markAll(store, { ...PROJECT, subscriber_id }, "read", {}),
    async [Symbol.asyncDispose]() {
      for (const stop of stops) stop()
      await second.close()
      await base[Symbol.asyncDispose]()
    },
  }
}

const upTo = (last: number) => Array.from({ length: last }, (_, n) => n + 1)

test("changes of two nodes at once come to the sockets of both, each once and in order", async () => {
  await using it = await nodes()
  const each = 40
  await Promise.all(
    it.stores.map(async (store) => {
      for (let n = 0; n < each; n++) await it.send(store)
    }),
  )
  const isTold = () => it.told.every(({ frames }) => frames.at(-1)?.total === 2 * each)
  // What a notification tells before the ears are open is found by the poll.
  await until(async () => {
    await Promise.all(it.hubs.map((hub) => hub.poll()))
    return isTold()
  })
  for (const socket of it.told) expect(socket.numbers()).toEqual(upTo(2 * each))
})

test("totals that change without a number of their own come to the other node, too", async () => {
  await using it = await nodes()
  const [here] = it.stores
  const id = await it.send(here)
  await until(async () => {
    await it.hubs[1]?.poll()
    return it.told.every((socket) => socket.frames.at(-1)?.unread === 1)
  })
  await until(async () => {
    await it.readLate(here, id) // again, in case that the ears were not open yet
    return it.told.every((socket) => socket.frames.at(-1)?.unread === 0)
  })
  for (const socket of it.told) expect(socket.numbers()).toEqual([1])
})

test("a node without ears finds the changes of the other one in the log", async () => {
  await using it = await nodes(deaf)
  const [here] = it.stores
  const [, there] = it.told
  for (let n = 0; n < 3; n++) await it.send(here)
  await it.readAll(here)
  expect(there?.frames).toEqual([])
  await until(async () => {
    await it.hubs[1]?.poll()
    return there?.frames.at(-1)?.unread === 0
  })
  expect(there?.numbers()).toEqual([1, 2, 3, 4])
  expect(there?.frames.at(-2)).toEqual({ type: "messages.read", upto_seq: 4 })
  await it.hubs[1]?.poll()
  expect(there?.frames).toHaveLength(5)
})
