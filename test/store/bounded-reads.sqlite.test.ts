import { Database } from "bun:sqlite"
import { beforeAll, expect, test } from "bun:test"
import { newId } from "../../src/core/ids"
import { rawSqlite } from "../../src/store/statements"
import { growProject } from "../harness/grown-project"
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
}

const ROWS = 20_000
/** A statement that reads them all takes several times as long, however busy the machine is. */
const MOST_MS = 6
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
}, 60_000)

test("no statement that a GET runs on the event loop grows with the rows of a project", async () => {
  const failed: string[] = []
  for (const address of readCalls("console", { ...ids, project_id })) {
    calling = address
    const { status, body } = await owner.get(address)
    if (status >= 500) failed.push(`${status} ${address} ${body?.error?.message}`)
  }
  expect(failed).toEqual([])
  using database = new Database(`${service.folder}/test.db`, { readonly: true })
  const slow = [...ran.values()].flatMap(({ text, values, by }) => {
    const statement = database.prepare(text)
    let least = Number.POSITIVE_INFINITY
    for (let attempt = 0; attempt < TRIES && least > MOST_MS; attempt++) {
      const begun = performance.now()
      statement.values(...(values as never[]))
      least = Math.min(least, performance.now() - begun)
    }
    return least > MOST_MS ? [`${least.toFixed(1)} ms, ${by}: ${text}`] : []
  })
  expect(slow).toEqual([])
}, 120_000)

/** A project may have a limited number of these. */
const FEW = /from "(provider_configs|webhooks)"/

test("nothing is counted without an end", () => {
  const counts = [...ran.values()].filter(
    ({ text }) => /count\(/i.test(text) && !/limit/i.test(text) && !FEW.test(text),
  )
  expect(counts.map(({ text, by }) => `${by}: ${text}`)).toEqual([])
})
