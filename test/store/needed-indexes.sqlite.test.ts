import { expect, test } from "bun:test"
import * as emails from "../../src/emails/emails"
import * as feed from "../../src/events/feed"
import { messagesBelow } from "../../src/fan-out/stopped"
import type { FanOutRow } from "../../src/fan-out/tables"
import * as idempotency from "../../src/http/idempotency"
import { answered } from "../../src/inbound/correlate"
import { unholdEnded } from "../../src/jobs/holds"
import type { MessageListFilter } from "../../src/messages/message-list"
import { messageRows } from "../../src/messages/pipeline"
import * as scheduled from "../../src/messages/scheduled"
import { messageFiles } from "../../src/messages/tables"
import { namedAmong } from "../../src/operations/file-sweep"
import { complainedOf, purgeHours } from "../../src/reputation/hour-counts"
import * as requestLog from "../../src/request-log/request-log"
import type { Store } from "../../src/store/store"
import { idFor } from "../harness/ids"
import { quietLog } from "../harness/quiet"
import { testStore } from "../harness/store"
import { PROJECT } from "../messages/letters"
import { outside } from "./outside"
import { planOf, statementsOf } from "./plans"

quietLog()

const page = { limit: 25, offset: 0, after: undefined, before: undefined }
const list = (filter: Partial<MessageListFilter>) => (store: Store) =>
  emails.list(store.read, PROJECT, { after: undefined, before: undefined, ...filter }, page)
const asked = { project_id: PROJECT, least_status: undefined, most_status: undefined }
const entries = { ...asked, path: undefined, key_id: undefined, request_id: undefined }

/** Every message writes to these tables, and each of their indexes is written with the row. */
const HOT = [
  "messages",
  "message_files",
  "events",
  "idempotency",
  "request_log",
  "reputation_hours",
]

/** What would read a whole table without the index. */
const NEEDS: Record<string, (store: Store) => Promise<unknown> | PromiseLike<unknown>> = {
  messages_by_project: list({}),
  messages_by_status: list({ status: "queued" }),
  messages_by_recipient: list({ to: "to@example.test" }),
  messages_by_template: list({ template_id: idFor("template") }),
  messages_by_subscriber: list({ subscriber_ids: [idFor("subscriber")] }),
  messages_by_user: list({ user_id: "ann" }),
  messages_by_fan_out: ({ read }) =>
    messagesBelow(read, { project_id: PROJECT, id: idFor("fan_out") } as FanOutRow, undefined, 5),
  messages_by_message_id: (store) =>
    answered(
      { ...store, secrets: { mac: () => Buffer.alloc(32) } } as never,
      { project_id: PROJECT, to_email: "a@in.test" },
      { in_reply_to: "<1@x.test>", references: [], from: null, returned: null },
    ),
  messages_scheduled: ({ read }) =>
    scheduled.list(read, { project_id: PROJECT, channels: ["email"] }, undefined).list(page),
  messages_held_until: (store) => unholdEnded(store, messageRows),
  message_files_by_name: ({ read }) => namedAmong(read, messageFiles, ["a"]),
  events_by_project: ({ read }) => feed.read(read, PROJECT, { limit: 1, types: [] }),
  events_by_subject: ({ read }) => feed.about(read, PROJECT, idFor("message")),
  idempotency_by_age: (store) => idempotency.purge(store),
  request_log_by_project: ({ read }) => requestLog.list(read, entries).list(page),
  request_log_by_request: ({ read }) =>
    requestLog.list(read, { ...entries, request_id: "req_1" }).list(page),
  reputation_hours_by_hour: (store) => purgeHours(store),
  reputation_hours_complained: ({ read }) => complainedOf(read, idFor("account"), 1),
}

/** The engine of work walks these in every table alike; `plans.test.ts` shows it for jobs. */
const OF_WORK = /_(ready|leased|dead|held)$/

test("each index that a message writes is needed by a query", async () => {
  await using it = await testStore()
  await using database = outside(it)
  const named = await database.rows(
    `SELECT name FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL
      AND tbl_name IN (${HOT.map((table) => `'${table}'`).join()})`,
  )
  const names = named.map(({ name }) => String(name)).filter((name) => !OF_WORK.test(name))
  expect(names.sort()).toEqual(Object.keys(NEEDS).sort())
  const unused: string[] = []
  for (const [index, ask] of Object.entries(NEEDS)) {
    const texts = await statementsOf(async () => ask(it.store))
    const plans = await Promise.all(texts.filter(isQuery).map((text) => planOf(database, text)))
    if (!plans.flat().some((step) => step.split(" ").includes(index))) unused.push(index)
  }
  expect(unused).toEqual([])
})

const isQuery = (text: string) => /^(select|update|delete|with)\b/i.test(text)
