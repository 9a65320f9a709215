import { expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { HELD, READY, RESTORE_HOLD } from "../../src/jobs/work-item"
import { showLife } from "../../src/jobs/work-nodes"
import { messages } from "../../src/messages/tables"
import { raiseMark } from "../../src/operations/database-mark"
import { startHeld } from "../../src/operations/start-held"
import * as instanceValues from "../../src/store/instance-values"
import { RUNS_ON } from "../../src/work"
import { idFor } from "../harness/ids"
import { quietLog } from "../harness/quiet"
import { engine } from "../harness/store"
import { postOffice } from "../messages/post-office"

quietLog()

/** An office with one open message, and how a server on it would begin. */
async function begun() {
  const office = await postOffice()
  const id = await office.accept()
  const { store, folder: data_dir } = office
  return Object.assign(office, {
    begin: (is_asked: boolean) => startHeld(store, { data_dir, is_asked, runs_on: RUNS_ON }),
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
  test("nothing is held while another node works on the database", async () => {
    await using office = await begun()
    const life = setInterval(() => void showLife(office.store, idFor("node")), 1000)
    await showLife(office.store, idFor("node"))
    try {
      const refused = office.begin(true)
      expect(refused).rejects.toMatchObject({ name: "OtherNodeRuns" })
      await refused.catch(() => {})
      expect(await office.work()).toEqual([READY, null])
    } finally {
      clearInterval(life)
    }
  })
}
