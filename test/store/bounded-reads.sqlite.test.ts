import { Database } from "bun:sqlite"
import { beforeAll, expect, test } from "bun:test"
import { bytesOfId, newId } from "../../src/core/ids"
import { consoleUsers } from "../../src/identity/tables"
import { RESTORE_HOLD } from "../../src/jobs/work-item"
import { changeHeld } from "../../src/operations/held-work"
import { rawSqlite } from "../../src/store/statements"
import { growProject } from "../harness/grown-project"
import { followPauses } from "../harness/pauses"
import { team } from "../harness/people"
import { readCalls } from "../harness/read-calls"
import { sharedService } from "../harness/shared-service"

const service = await sharedService()
const { owner, account_id, project_id } = await team(service)
const ids = {
  email_id: newId(),
  template_id: newId(),
  subscriber_id: newId(),
  webhook_id: newId(),
  topic_id: newId(),
  application_id: newId(),
  environment_id: newId(),
  organization_id: newId(),
  end_user_id: newId(),
}

const ROWS = 20_000
/** Of the processor. The deepest page walks half of the rows in 7; a statement that reads them all takes 13 and more. */
const MOST_MS = 9
const TRIES = 15

type Values = unknown[]

/** Every statement that was run on the loop, with its values, and the call that did. */
const ran = new Map<string, { text: string; values: Values; by: string }>()
let calling = ""

beforeAll(async () => {
  const database = new Database(`${service.folder}/test.db`)
  await growProject(database, { account_id, project_id }, ids, { from: 0, to: ROWS })
  database.close()
  const reader = rawSqlite.get(service.store.read) as Database
  const prepare = reader.prepare.bind(reader)
  const recording = (text: string) => {
    const statement = prepare(text)
    for (const way of ["all", "get", "values"] as const) {
      const run = statement[way].bind(statement) as (...values: Values) => unknown
      Object.assign(statement, {
        [way](...values: Values) {
          ran.set(`${text} ${JSON.stringify(values)}`, { text, values, by: calling })
          return run(...values)
        },
      })
    }
    return statement
  }
  Object.assign(reader, { prepare: recording })
})

async function failedOf(caller: { get: typeof owner.get }, addresses: string[]): Promise<string[]> {
  const failed: string[] = []
  for (const address of addresses) {
    calling = address
    using _ = address.endsWith(`${ids.subscriber_id}/export`) ? fewMessages() : undefined
    const { status, body } = await caller.get(address)
    if (status >= 500) failed.push(`${status} ${address} ${body?.error?.message}`)
  }
  return failed
}

/** An export has statements for each message of its subscriber, which are the same from the second page on. */
function fewMessages(): Disposable {
  using database = new Database(`${service.folder}/test.db`)
  const named = bytesOfId(ids.subscriber_id)
  const other = bytesOfId(newId())
  const give = "UPDATE messages SET subscriber_id = ? WHERE subscriber_id = ?"
  const but_some = "AND id NOT IN (SELECT id FROM messages ORDER BY id LIMIT 250)"
  database.run(`${give} ${but_some}`, [other, named])
  return {
    [Symbol.dispose]() {
      using database = new Database(`${service.folder}/test.db`)
      database.run(give, [named, other])
    },
  }
}

/** Of what was run on the loop, the statements that read all rows. */
function slowOnes(database: Database): string[] {
  return [...ran.values()].flatMap(({ text, values, by }) => {
    const statement = database.prepare(text)
    let least = Number.POSITIVE_INFINITY
    for (let attempt = 0; attempt < TRIES && least > MOST_MS; attempt++) {
      const begun = process.threadCpuUsage()
      statement.values(...(values as never[]))
      const { user, system } = process.threadCpuUsage(begun)
      least = Math.min(least, (user + system) / 1000)
    }
    return least > MOST_MS ? [`${least.toFixed(1)} ms, ${by}: ${text}`] : []
  })
}

test("no statement that a GET runs on the event loop grows with the rows of a project", async () => {
  const addresses = readCalls("console", { ...ids, project_id })
  expect(await failedOf(owner, addresses)).toEqual([])
  using database = new Database(`${service.folder}/test.db`, { readonly: true })
  expect(slowOnes(database)).toEqual([])
  expect(unboundedCounts()).toEqual([])
})

test("nor one for an operator or a load balancer, though work of many is held", async () => {
  using database = new Database(`${service.folder}/test.db`)
  for (const table of ["messages", "webhook_deliveries", "jobs"])
    database.run(`UPDATE ${table} SET state = 3, owner = '${RESTORE_HOLD}'`)
  database.run(`INSERT INTO paused_queues VALUES ('${RESTORE_HOLD}', NULL, 0)`)
  const stop = await followPauses(service.store, service.parts.queues)
  await service.store.tx((tx) => tx.update(consoleUsers).set({ operator: true }))
  const operator = { get: (path: string) => owner.get(path, { "x-account-id": account_id }) }
  ran.clear()
  const calls = readCalls("console", { ...ids, project_id })
  const theirs = calls.filter((address) => /^\/v1\/(admin|request-log)/.test(address))
  expect(await failedOf(operator, [...theirs, "/v1/admin/doctor"])).toEqual([])
  calling = "queue purge --dry-run"
  const held = await changeHeld(service.store, { action: "count", filter: {} })
  expect(held.counts).toEqual({ messages: ROWS, webhook_deliveries: ROWS, jobs: ROWS })
  for (const filter of [{ project: newId() }, { domain: "nowhere.test" }])
    await changeHeld(service.store, { action: "count", filter })
  calling = "/readyz"
  expect(await service.parts.queues.warnings()).toEqual([
    expect.stringContaining("More than 1000 sends"),
  ])
  stop()
  expect(slowOnes(database)).toEqual([])
  expect(unboundedCounts()).toEqual([])
})

/** A project may have a limited number of providers and webhooks, and a person of devices. */
const FEW = /from "(provider_configs|webhooks)"|from "devices" where .*"user_id" in/

function unboundedCounts(): string[] {
  const counts = [...ran.values()].filter(
    ({ text }) => /count\(/i.test(text) && !/limit/i.test(text) && !FEW.test(text),
  )
  return counts.map(({ text, by }) => `${by}: ${text}`)
}
