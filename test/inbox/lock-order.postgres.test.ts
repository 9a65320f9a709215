import { expect, test } from "bun:test"
import "../../src/channels"
import { sql } from "drizzle-orm"
import { settings } from "../../src/core/config"
import { newId } from "../../src/core/ids"
import * as inbox from "../../src/inbox/inbox"
import { InboxLedger } from "../../src/inbox/ledger"
import { rewriteRow } from "../../src/inbox/note-row"
import { namedByMessages } from "../../src/operations/table-lives"
import { openStore } from "../../src/store/open"
import type { Reader } from "../../src/store/store"
import { until } from "../harness/hooks"
import { idFor } from "../harness/ids"
import { quietLog } from "../harness/quiet"
import { testStore } from "../harness/store"
import { addNote } from "./notes"

quietLog()

const PROJECT = { account_id: idFor("account_1"), project_id: idFor("project_1") }

const waiting = async (db: Reader) => {
  const raw = db as unknown as { execute(query: unknown): Promise<unknown[]> }
  const ours = sql`datname = current_database() AND wait_event_type = 'Lock'`
  return (await raw.execute(sql`SELECT 1 FROM pg_stat_activity WHERE ${ours}`)).length
}

test("a removal waits for the inbox before it holds the message, as a change does", async () => {
  await using base = await testStore()
  const { store } = base
  const other = await openStore({ ...settings(), database_url: base.database_url })
  const { project_id } = PROJECT
  const subscriber_id = newId()
  const id = await addNote({ store }, PROJECT, subscriber_id)
  const runs = { change: 0, removal: 0 }
  const held = Promise.withResolvers<void>()
  const change = store.tx(async (tx) => {
    runs.change += 1
    await InboxLedger.open(tx, project_id, [subscriber_id])
    held.resolve()
    await until(async () => (await waiting(store.read)) > 0)
    await rewriteRow(tx, { id, project_id }, { subject: "Changed" })
  })
  await held.promise
  const removal = other.tx(async (tx) => {
    runs.removal += 1
    await inbox.remove(tx, { project_id }, id, namedByMessages)
  })
  await Promise.all([change, removal])
  expect(runs).toEqual({ change: 1, removal: 1 }) // neither was the victim of a deadlock
  await other.close()
})
