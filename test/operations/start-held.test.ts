import { expect, spyOn, test } from "bun:test"
import { mkdirSync } from "node:fs"
import { join } from "node:path"
import { eq, inArray, sql } from "drizzle-orm"
import { monotonic, sleep } from "../../src/core/time"
import { nodes as nodeRows } from "../../src/jobs/tables"
import { HELD, READY, RESTORE_HOLD } from "../../src/jobs/work-item"
import { showLife } from "../../src/jobs/work-nodes"
import { messages } from "../../src/messages/tables"
import { raiseMark, whyPutBack } from "../../src/operations/database-mark"
import { startHeld, startInTurn, startLock } from "../../src/operations/start-held"
import * as instanceValues from "../../src/store/instance-values"
import type { Store } from "../../src/store/store"
import { ALLOWED_WHILE_HELD } from "../../src/work"
import { idFor } from "../harness/ids"
import { quietLog } from "../harness/quiet"
import { engine } from "../harness/store"
import { postOffice } from "../messages/post-office"

quietLog()

/** How many sessions of the database asked for their turn to start last. */
async function asking(store: Store): Promise<number> {
  const counted = store.read.select({ n: sql<string>`count(*)` }).from(sql`pg_stat_activity`)
  const others = sql`datname = current_database() AND pid <> pg_backend_pid()`
  const [row] = await counted.where(sql`${others} AND query LIKE '%pg_try_advisory_xact_lock%'`)
  return Number(row?.n ?? 0)
}

/** An office with one open message, and how a server on it would begin. */
async function begun() {
  const office = await postOffice()
  const id = await office.accept()
  const { store, folder: data_dir } = office
  return Object.assign(office, {
    begin: (is_asked: boolean) =>
      startHeld(store, { data_dir, is_asked, runs_on: ALLOWED_WHILE_HELD }),
    raise: () => raiseMark(store, data_dir),
    mark: () => instanceValues.find(store.read, "database_mark"),
    async work() {
      const [row] = await store.read.select().from(messages).where(eq(messages.id, id))
      return [row?.state, row?.owner]
    },
  })
}

test("a usual start holds nothing, and one that is asked to holds what is open", async () => {
  await using office = await begun()
  await office.begin(false)
  await office.raise()
  await office.begin(false)
  expect(await office.work()).toEqual([READY, null])
  await office.begin(true)
  expect(await office.work()).toEqual([HELD, RESTORE_HOLD])
  expect(await instanceValues.find(office.store.read, "lost_events")).toBeDefined()
})

test("a database that is older than its folder starts held, and the next start does not hold again", async () => {
  await using office = await begun()
  await office.raise()
  const copied = (await office.mark()) ?? ""
  await office.raise()
  await office.store.tx((tx) => instanceValues.set(tx, "database_mark", copied))
  await office.begin(false)
  expect(await office.work()).toEqual([HELD, RESTORE_HOLD])
  await office.raise()
  await office.store.tx((tx) => tx.update(messages).set({ state: READY, owner: null }))
  await office.begin(false)
  expect(await office.work()).toEqual([READY, null])
})

if (engine === "postgres") {
  test("a node does not start while another one decides, and then finds its mark", async () => {
    await using office = await begun()
    const { store, folder: data_dir, database_url } = office
    await office.raise()
    await office.raise()
    const [here] = ((await office.mark()) ?? "").split(" ")
    await store.tx((tx) => instanceValues.set(tx, "database_mark", `${here} 1`))
    const order: string[] = []
    const settings = { data_dir, database_url, database_direct_url: null }
    let second: ReturnType<typeof startInTurn> | undefined
    await startLock(database_url ?? "", async () => {
      second = startInTurn(store, settings, { is_asked: false, runs_on: ALLOWED_WHILE_HELD })
      void second.then(() => order.push("second"))
      while ((await asking(store)) < 2) await sleep(5)
      await store.tx((tx) => instanceValues.set(tx, "database_mark", `${here} 9`))
      order.push("first")
    })
    const endStart = await second
    expect(order).toEqual(["first", "second"])
    expect(await office.work()).toEqual([READY, null])
    await endStart?.()
  })

  test("of nodes that start at once on a database that was put back, one holds, and none what came in since", async () => {
    await using office = await begun()
    const { store, folder, database_url } = office
    const nodes = ["a", "b", "c"].map((name) => join(folder, name))
    for (const dir of nodes) mkdirSync(dir)
    for (const dir of [...nodes, ...nodes]) await raiseMark(store, dir)
    const here = (await office.mark())?.split(" ")[0]
    await store.tx((tx) => instanceValues.set(tx, "database_mark", `${here} 1`))
    const arrived: string[] = []
    const start = async (data_dir: string) => {
      const settings = { data_dir, database_url, database_direct_url: null }
      const started = await startInTurn(store, settings, {
        is_asked: false,
        runs_on: ALLOWED_WHILE_HELD,
      })
      arrived.push(await office.accept()) // what it accepts as soon as it has started
      return started
    }
    const started = await Promise.all(nodes.map(start))
    expect(await office.work()).toEqual([HELD, RESTORE_HOLD])
    const rows = await store.read.select().from(messages).where(inArray(messages.id, arrived))
    expect(rows.map(({ state }) => state)).toEqual([READY, READY, READY])

    // Each of them shows life from then on, and until it works.
    const [one] = started
    await one?.()
    expect(await store.read.select().from(nodeRows)).toHaveLength(2)
    for (const endStart of started) await endStart()
    expect(await store.read.select().from(nodeRows)).toEqual([])
  })

  test("the next node starts after the one that held, also where its folder knows the database further", async () => {
    await using office = await begun()
    const { store, folder, database_url } = office
    const [behind, ahead] = ["behind", "ahead"].map((name) => join(folder, name)) as [
      string,
      string,
    ]
    for (const dir of [behind, ahead]) mkdirSync(dir)
    for (const dir of [behind, ahead, ahead, ahead]) await raiseMark(store, dir)
    const here = (await office.mark())?.split(" ")[0]
    const putBack = () => store.tx((tx) => instanceValues.set(tx, "database_mark", `${here} 0`))
    const start = (data_dir: string) => {
      const settings = { data_dir, database_url, database_direct_url: null }
      return startInTurn(store, settings, { is_asked: false, runs_on: ALLOWED_WHILE_HELD })
    }
    await putBack()
    const first = await start(behind) // it is alive from now on
    const second = await start(ahead)
    expect(await office.work()).toEqual([HELD, RESTORE_HOLD])
    for (const endStart of [first, second]) await endStart()

    await putBack()
    expect(await whyPutBack(store, ahead)).toContain("older than its folder knows it")
    expect(await whyPutBack(store, behind)).toContain("older than its folder knows it")
  })

  test("nothing is held while another node works on the database", async () => {
    await using office = await begun()
    await showLife(office.store, idFor("node"))
    const refused = office.begin(true) // waits for as long as a dead node counts as one that lives
    const later = monotonic() + 30_000
    const time = spyOn(performance, "now").mockImplementation(() => later)
    await expect(refused.finally(() => time.mockRestore())).rejects.toMatchObject({
      name: "OtherNodeRuns",
    })
    expect(await office.work()).toEqual([READY, null])
  })
}
