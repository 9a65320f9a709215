import { expect, test } from "bun:test"
import { newId } from "../../src/core/ids"
import { now } from "../../src/core/time"
import { record } from "../../src/events/emit"
import { events } from "../../src/events/tables"
import { idempotency } from "../../src/http/tables"
import { search, searchedRows } from "../../src/operations/trace-search"
import { requestLog } from "../../src/request-log/tables"
import { inserter } from "../../src/store/statements"
import { idFor } from "../harness/ids"
import { quietLog } from "../harness/quiet"
import { testStore } from "../harness/store"

quietLog()

/** More than two looks. */
const ROWS = 1_203

const ADDRESS = "ann@mailbox.test"
const [account_id, ours, others] = [idFor("a"), idFor("p"), idFor("q")]

const insertRequests = inserter(requestLog)
const insertAnswers = inserter(idempotency)

test("a search goes through all rows of a project, and through none of another one", async () => {
  await using it = await testStore()
  const { store } = it
  const subscriber_id = newId()
  const isNamed = (at: number) => at === 0 || at === 700 || at === ROWS - 1
  for (const project_id of [others, ours]) {
    const all = Array.from({ length: ROWS }, (_, at) => at)
    const told = all.map((at) => ({
      ...{ account_id, project_id, subject_id: null, type: "suppression.created" },
      data: { address: isNamed(at) ? ADDRESS : `ann${at}@mailbox.test` },
    }))
    const asked = all.map((at) => ({
      ...{ id: newId(), request_id: `req_${at}`, project_id, key_id: null, method: "GET" },
      path: `/v1/subscribers/${isNamed(at) ? subscriber_id : newId()}`,
      ...{ status: 200, duration_ms: 1, ip: "127.0.0.1", error_code: null, created_at: now() },
    }))
    const answers = all.map((at) => ({
      request: `${project_id} POST /v1/emails ${String(at).padStart(5, "0")}`,
      ...{ project_id, body_hash: "", status: 201, created_at: now() },
      answer: JSON.stringify({ to: isNamed(at) ? ADDRESS : "bob@mailbox.test" }),
    }))
    await store.tx(async (tx) => {
      await record(tx, told)
      await insertRequests(tx, asked)
      await insertAnswers(tx, answers)
    })
  }
  const names = { subscriber_id, external_id: "ann", address: ADDRESS, phone: null }
  const person = { project_id: ours, until: now(), ...names }
  const searched = { db: store.read, account_id, person, goes_on: () => true }
  const rows = searchedRows(searched)

  const projectsOf = async (table: typeof events | typeof requestLog | typeof idempotency) => {
    const key = table === idempotency ? idempotency.request : (table as typeof events).id
    const all = await store.read.select({ key, project_id: table.project_id }).from(table)
    return new Map(all.map((row) => [row.key, row.project_id]))
  }
  const plans = [
    [rows.events, events],
    [rows.requests, requestLog],
    [rows.answers, idempotency],
  ] as const
  for (const [plan, table] of plans) {
    const owners = await projectsOf(table)
    const found = (await Array.fromAsync(search(searched, plan))).flat()
    expect(found.map((key) => owners.get(key))).toEqual([ours, ours, ours])
    expect(new Set(found).size).toBe(3)
  }
})
