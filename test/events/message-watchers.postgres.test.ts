import { expect, test } from "bun:test"
import { settings } from "../../src/core/config"
import { MessageWatchers } from "../../src/events/message-watchers"
import { openStore } from "../../src/store/open"
import { quietLog } from "../harness/quiet"
import { testStore } from "../harness/store"

quietLog()

interface Change {
  project_id: string
  id: string
  text?: string
}

async function until(what: () => boolean) {
  const deadline = performance.now() + 20_000
  while (!what()) {
    if (performance.now() > deadline) throw new Error("it did not come")
    await Bun.sleep(5)
  }
}

/** Two nodes on one database. */
async function nodes() {
  const base = await testStore()
  const second = await openStore({ ...settings(), database_url: base.database_url })
  const make = (store: typeof second) => {
    const tellers = new Set<(change: Change) => void>()
    const watching = new MessageWatchers(store, (tell) => {
      tellers.add(tell)
      return () => void tellers.delete(tell)
    })
    const notify = (change: Change) => {
      for (const tell of tellers) tell(change)
    }
    return { watching, notify, stop: watching.start() }
  }
  const [here, there] = [make(base.store), make(second)]
  const told: Change[] = []
  return {
    here,
    there,
    told,
    watch: (project_id: string) =>
      there.watching.watch(project_id, (frames) => {
        for (const frame of frames) told.push(JSON.parse(frame).message as Change)
      }),
    async [Symbol.asyncDispose]() {
      here.stop()
      there.stop()
      await second.close()
      await base[Symbol.asyncDispose]()
    },
  }
}

/** Until the other node has heard that somebody watches. */
async function heard({ here, told }: Awaited<ReturnType<typeof nodes>>, project_id: string) {
  const said = (): boolean => {
    here.notify({ project_id, id: "probe" })
    return told.length > 0
  }
  await until(said)
  here.notify({ project_id, id: "the last probe" }) // the others arrive before it
  await until(() => told.at(-1)?.id === "the last probe")
  told.length = 0
}

test("a change on one node is told to those who watch the project on another", async () => {
  await using it = await nodes()
  it.watch("p1")
  await heard(it, "p1")
  const list = Array.from({ length: 200 }, (_, n) => ({ project_id: "p1", id: `m${n}` }))
  for (const change of list) it.here.notify(change)
  it.here.notify({ project_id: "p2", id: "of others" })
  await until(() => it.told.length >= 200)
  expect(it.told).toEqual(list)
})

test("what is too long for a notification is left out, and the rest still comes", async () => {
  await using it = await nodes()
  it.watch("p1")
  await heard(it, "p1")
  it.here.notify({ project_id: "p1", id: "long", text: "é".repeat(4000) })
  for (let n = 0; n < 10; n++) {
    it.here.notify({ project_id: "p1", id: `m${n}`, text: "é".repeat(1500) })
  }
  await until(() => it.told.length >= 10)
  expect(it.told.map(({ id }) => id)).toEqual(Array.from({ length: 10 }, (_, n) => `m${n}`))
})

test("a node hears its own changes once", async () => {
  await using it = await nodes()
  it.watch("p1")
  await heard(it, "p1")
  it.there.notify({ project_id: "p1", id: "own" })
  it.here.notify({ project_id: "p1", id: "theirs" })
  await until(() => it.told.some(({ id }) => id === "theirs"))
  expect(it.told.map(({ id }) => id).sort()).toEqual(["own", "theirs"])
})
