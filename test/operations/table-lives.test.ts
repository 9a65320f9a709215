import { afterAll, expect, test } from "bun:test"
import "../../src/channels" // what channels do before their messages are removed
import { eq, getTableName } from "drizzle-orm"
import type { SQLiteTable } from "drizzle-orm/sqlite-core"
import * as audit from "../../src/audit-log/audit-log"
import { openBlobs } from "../../src/core/blobs"
import { settings } from "../../src/core/config"
import { newEventId, newId } from "../../src/core/ids"
import { currentPeriod, millis, now, today } from "../../src/core/time"
import { fanOuts } from "../../src/fan-out/tables"
import { accounts, apiKeys } from "../../src/identity/tables"
import { jobs, longJobs } from "../../src/jobs/tables"
import { DEAD, HELD, OVER, READY } from "../../src/jobs/work-item"
import { releaseSilent } from "../../src/jobs/work-nodes"
import { keep } from "../../src/mailbox/mailbox"
import { mailboxMails } from "../../src/mailbox/tables"
import { messages } from "../../src/messages/tables"
import { purgeAccountNow } from "../../src/operations/purge"
import { endOf, keyOf, leading, parentsOf, tableLives } from "../../src/operations/table-lives"
import { tidyRounds } from "../../src/operations/tidy"
import { complaintHolds } from "../../src/reputation/tables"
import { total } from "../../src/store/counters"
import { lifeOf } from "../../src/store/life"
import type { Store, Tx } from "../../src/store/store"
import { suppressions } from "../../src/suppressions/tables"
import { deliveries } from "../../src/webhooks/tables"
import { movableClock } from "../harness/clock"
import { addProject } from "../harness/project-rows"
import { quietLog } from "../harness/quiet"
import { testStore } from "../harness/store"
import { sampleRow, schemaTables } from "../harness/table-rows"

quietLog()

const base = await testStore()
afterAll(() => base[Symbol.asyncDispose]())
const { store, folder } = base
const clock = movableClock()
const schema = await schemaTables()
/** Only several processes that share a database leave signs of life. */
const tables = schema.filter((table) => !store.isAlone || getTableName(table) !== "nodes")

/** Longer than any setting allows. */
const A_MONTH = 31 * 86_400
const ELEVEN_YEARS = 11 * 365 * 86_400

const blobs = openBlobs(`${folder}/blobs`)
const inbound_blobs = openBlobs(`${folder}/inbound`)
const storage = { blobs, inbound_blobs, disk: { free_bytes: () => Number.POSITIVE_INFINITY } }

const round = (changes: Partial<ReturnType<typeof settings>> = {}) =>
  tidyRounds(store, { ...settings(), ...changes }, storage)()

const EVERYTHING_ENDS = { "retention.audit_log": 3650 * 86_400_000 }

const nameOf = (table: SQLiteTable) => getTableName(table)

/** One id for each noun, so that rows name each other as rows of a server do. */
const ids = {
  user_id: newId(),
  message_id: newId(),
  mail_id: newId(),
  inbound_id: newId(),
  fan_out_id: newId(),
  subscriber_id: newId(),
  topic_id: newId(),
  template_id: newId(),
  domain_id: newId(),
  webhook_id: newId(),
  event_id: newEventId(),
  session_id: newId(),
}

/** What makes a row one that is over, by the name of its table. */
const OVER_ROWS: Record<string, Record<string, unknown>> = {
  messages: { id: ids.message_id, state: OVER, channel: "email", tags: ["one"] },
  message_tags: { tag: "one" },
  mailbox_mails: { id: ids.mail_id },
  fan_outs: { id: ids.fan_out_id, completed_at: now() },
  inbound_emails: { id: ids.inbound_id, status: "processed" },
  events: { id: ids.event_id },
  webhook_deliveries: { state: OVER },
  jobs: { state: DEAD, name: "some.job" },
  long_jobs: { completed_at: now() },
  suppressions: { expires_at: now() },
  api_keys: { revoked_at: now() },
  complaint_holds: { window_start: now() },
  reputation_hours: { hour: Math.floor(millis() / 3_600_000) },
  usage_days: { day: today() },
  message_days: { day: today() },
  inbox_days: { day: today() },
  push_days: { day: today() },
  inbox_entries: { id: ids.message_id },
  inboxes: { id: ids.subscriber_id },
  quotas: { period: currentPeriod() },
  ai_quotas: { period: currentPeriod() },
  ai_spending: { period: currentPeriod() },
  ai_instance_spending: { period: currentPeriod() },
  ai_calls: { lease_until: now(), period: currentPeriod() },
  rate_windows: { ends: now() },
  soft_failures: { channel: "email" },
  nodes: { seen_at: "2020-01-01T00:00:00.000Z" },
  webhooks: { id: ids.webhook_id, events: [] }, // a list, because a service of another file routes events
  domains: { id: ids.domain_id },
  topics: { id: ids.topic_id },
  templates: { id: ids.template_id },
  subscribers: { id: ids.subscriber_id },
  console_users: { id: ids.user_id },
  console_sessions: { id: ids.session_id },
}

/** Rows whose own table is filled after those that name them. */
const first = ["messages", "mailbox_mails", "inbound_emails", "domains"]

async function fillAll(target: Store, owner: { account_id: string; project_id: string }) {
  const last = tables.filter((table) => !first.includes(nameOf(table)))
  const in_order = [...tables.filter((table) => first.includes(nameOf(table))), ...last]
  for (const table of in_order) {
    const name = nameOf(table)
    if (name === "accounts" || name === "projects") continue
    const subject = name === "quotas" ? { subject: owner.account_id } : {}
    const row = sampleRow(table, { ...owner, ...ids, ...subject, ...OVER_ROWS[name] })
    await target.tx((tx) => tx.insert(table).values(row as never))
  }
}

async function tablesWithRows(): Promise<string[]> {
  const found: string[] = []
  for (const table of tables) {
    if ((await store.read.select().from(table).limit(1)).length > 0) found.push(nameOf(table))
  }
  return found.sort()
}

const endingBy = (wanted: (table: SQLiteTable) => boolean) =>
  tables.filter(wanted).map(nameOf).sort()

/** Who removes the rows of a table that do not end by themselves. */
const ownerOf = (table: SQLiteTable) =>
  endOf(table) === "never" ? lifeOf(leading(table)).owner : undefined

test("every table of the schema declares its life", () => {
  const named = tableLives.map(({ table }) => nameOf(table))
  expect(named).toEqual(schema.map(nameOf).sort())
})

test("rows that go with another one name it by its only key", () => {
  for (const { table, ends } of tableLives) {
    const parents = parentsOf(table)
    if (ends === "with row")
      expect([nameOf(table), parents.length > 0]).toEqual([nameOf(table), true])
    for (const parent of parents) expect(keyOf(parent.table)).toHaveLength(1)
  }
})

test("rows go by themselves, or with their owner, exactly as the ends say", async () => {
  const owner = await addProject(store)
  await fillAll(store, owner)
  expect(await tablesWithRows()).toEqual(tables.map(nameOf).sort())

  clock.advance({ seconds: ELEVEN_YEARS })
  await round()
  expect(await tablesWithRows()).toContain("audit_log") // unless the operator says otherwise
  clock.advance({ seconds: A_MONTH }) // what the first round itself wrote goes with the next one
  await round(EVERYTHING_ENDS)
  if (!store.isAlone) await releaseSilent(store, [])
  const kept = endingBy((table) => ownerOf(table) !== undefined)
  expect(await tablesWithRows()).toEqual(kept)

  const { account_id } = owner
  await store.tx((tx) =>
    tx.update(accounts).set({ deleting_at: now() }).where(eq(accounts.id, account_id)),
  )
  await purgeAccountNow({ store, blobs }, account_id)
  const left = endingBy((table) => ["user", "instance"].includes(ownerOf(table) ?? ""))
  expect(await tablesWithRows()).toEqual(left)
})

test("what is open, or has no end of its own, stays for eleven years", async () => {
  const owner = await addProject(store)
  const open: [SQLiteTable, Record<string, unknown>][] = [
    [messages, { channel: "email", state: READY }],
    [messages, { channel: "email", state: HELD, scheduled_at: now() }],
    [deliveries, { state: READY }],
    [jobs, { state: READY }],
    [longJobs, { completed_at: null }],
    [fanOuts, { completed_at: null }],
    [suppressions, { expires_at: null, channel: "email" }],
    [apiKeys, { revoked_at: null, expires_at: null }],
    [complaintHolds, { held_at: now() }],
  ]
  const rows = open.map(([table, given]) => {
    return {
      table,
      row: sampleRow(table, { ...owner, event_id: newEventId(), tags: [], ...given, id: newId() }),
    }
  })
  for (const { table, row } of rows) await store.tx((tx) => tx.insert(table).values(row as never))
  clock.advance({ seconds: ELEVEN_YEARS })
  await round(EVERYTHING_ENDS)
  for (const { table, row } of rows) {
    const found = await store.read
      .select()
      .from(table)
      .where(eq(idOf(table), String(row.id)))
    expect([nameOf(table), found.length]).toEqual([nameOf(table), 1])
  }
})

const idOf = (table: SQLiteTable) => (table as unknown as typeof messages).id

test("the totals of audit log and mailbox follow what went", async () => {
  const { account_id, project_id } = await addProject(store)
  const about = { action: "key.revoked", target: { type: "api_key", id: null } }
  const keepMail = (tx: Tx) => {
    const given = { id: newId(), account_id, project_id, recipients: ["ann@mailbox.test"] }
    return keep(tx, sampleRow(mailboxMails, given) as never)
  }
  const totalsNow = async () => [
    await total(store.read, account_id, "audit_log"),
    await total(store.read, project_id, "mailbox_mails"),
  ]
  await store.tx(async (tx) => {
    for (let n = 0; n < 3; n++) {
      await audit.record(tx, audit.SYSTEM, { account_id, project_id, ...about })
      await keepMail(tx)
    }
  })
  const ten_days = { "retention.audit_log": 10 * 86_400_000 }
  clock.advance({ seconds: 9 * 86_400 })
  await round(ten_days)
  expect(await totalsNow()).toEqual([3, 3])
  clock.advance({ seconds: 22 * 86_400 })
  await round(ten_days)
  expect(await totalsNow()).toEqual([0, 0])
})
