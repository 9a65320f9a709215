import { afterAll, expect, test } from "bun:test"
import { randomBytes } from "node:crypto"
import { statSync } from "node:fs"
import { join } from "node:path"
import { SQL as Postgres } from "bun"
import { count, eq, gte, inArray, type SQL } from "drizzle-orm"
import type { SQLiteTable } from "drizzle-orm/sqlite-core"
import { openBlobs } from "../../src/core/blobs"
import { settings } from "../../src/core/config"
import { firstIdAt, newId } from "../../src/core/ids"
import { millis } from "../../src/core/time"
import { events } from "../../src/events/tables"
import { inboundContents, inboundEmails, inboundRaws } from "../../src/inbound/tables"
import { HELD, OVER } from "../../src/jobs/work-item"
import { mailboxMails, mailboxRecipients } from "../../src/mailbox/tables"
import {
  attempts,
  messageContents,
  messageRaws,
  messages,
  messageTags,
} from "../../src/messages/tables"
import { filePages } from "../../src/operations/give-back"
import { tidyRounds } from "../../src/operations/tidy"
import { requestLog } from "../../src/request-log/tables"
import { bumpAll, totals } from "../../src/store/counters"
import type { Tx } from "../../src/store/store"
import { deliveries } from "../../src/webhooks/tables"
import { movableClock } from "../harness/clock"
import { addProject } from "../harness/project-rows"
import { quietLog } from "../harness/quiet"
import { sizes } from "../harness/sizes"
import { testStore } from "../harness/store"
import { sampleRow } from "../harness/table-rows"

quietLog()

const base = await testStore()
afterAll(() => base[Symbol.asyncDispose]())
const { store, folder, database_url } = base
const clock = movableClock()

const DAY_SECONDS = 86_400
const DAY_MS = DAY_SECONDS * 1000
const MONTH = 30
const DAYS = 10 * MONTH
const PAGE = 4096

/** Days between two looks of the retention. */
const STEP = 5

type Owner = { account_id: string; project_id: string }

/** A UUIDv7 of the moment that the moved clock shows. */
const idNow = () => Bun.randomUUIDv7("hex", millis())

/** Rows by table, and by how much counters of the project change, until a day is over. */
class Day {
  readonly #rows = new Map<SQLiteTable, object[]>()
  readonly #counted = new Map<string, number>()

  add(table: SQLiteTable, given: Record<string, unknown>) {
    const rows = this.#rows.get(table) ?? []
    rows.push(sampleRow(table, given))
    this.#rows.set(table, rows)
  }

  count(name: string) {
    this.#counted.set(name, (this.#counted.get(name) ?? 0) + 1)
  }

  async write(tx: Tx, { project_id }: Owner) {
    for (const [table, rows] of this.#rows) {
      for (let from = 0; from < rows.length; from += AT_ONCE)
        await tx.insert(table).values(rows.slice(from, from + AT_ONCE) as never)
    }
    const bumps = [...this.#counted].map(([name, by]) => ({ owner: project_id, name, by }))
    await bumpAll(tx, bumps)
  }
}

const AT_ONCE = 100

/** One endpoint gets everything. */
const webhook_id = newId()

/** A message that was delivered, with all that a delivery leaves behind. */
function addMessage(day: Day, owner: Owner, state: number): string {
  const id = idNow()
  const large = randomBytes(1500).toString("hex")
  const status = state === OVER ? "delivered" : "queued"
  const lists = { tags: ["one"], recipients: [] }
  day.add(messages, { ...owner, ...lists, id, state, status, channel: "email" })
  day.add(messageContents, { message_id: id, content: { text: large } })
  day.add(messageRaws, { message_id: id, raw: Buffer.from(large) })
  day.add(messageTags, { ...owner, tag: "one", message_id: id })
  day.add(attempts, { message_id: id })
  const event_id = `evt_${idNow()}`
  day.add(events, { ...owner, id: event_id, subject_id: id, position: 1 })
  day.add(deliveries, { ...owner, webhook_id, id: idNow(), event_id, state: OVER })
  day.add(requestLog, { ...owner, id: idNow() })
  const mail_id = idNow()
  day.add(mailboxMails, { ...owner, id: mail_id, raw: Buffer.from(large), recipients: [] })
  day.add(mailboxRecipients, { ...owner, mail_id })
  const inbound_id = idNow()
  day.add(inboundEmails, { ...owner, id: inbound_id, status: "processed" })
  day.add(inboundContents, { inbound_id })
  day.add(inboundRaws, { inbound_id, raw: Buffer.from(large) })
  for (const name of ["email", "mailbox_mails", "inbound_emails"]) day.count(name)
  if (status !== "queued") day.count(`email.${status}`)
  return id
}

/** Bytes of the database on disk. */
async function size(): Promise<number> {
  if (database_url) return postgresSize(database_url)
  await store.emptyLog()
  return statSync(join(folder, "test.db")).size
}

/** Here a month takes a second, so autovacuum has no time. Postgres keeps what is free for new rows. */
async function postgresSize(url: string): Promise<number> {
  const sql = new Postgres(url, { max: 1 })
  try {
    await sql.unsafe("VACUUM")
    const [row] = await sql`SELECT pg_database_size(current_database()) AS bytes`
    return Number(row.bytes)
  } finally {
    await sql.close()
  }
}

async function countOf(table: SQLiteTable, where?: SQL): Promise<number> {
  const [row] = await store.read.select({ n: count() }).from(table).where(where)
  return Number(row?.n)
}

/** How many rows there are, and how many of them are younger than their limit. */
async function kept(days: Record<string, number>) {
  const since = (name: string) => firstIdAt(millis() - (days[name] ?? 0) * DAY_MS)
  const look = async (table: typeof messages, column: typeof messages.id, limit: string) => [
    await countOf(table),
    await countOf(table, gte(column, limit)),
  ]
  const asIds = (table: SQLiteTable) => table as unknown as typeof messages
  const parts = messageContents.message_id as unknown as typeof messages.id
  return {
    messages: await look(messages, messages.id, since("messages")),
    contents: await look(asIds(messageContents), parts, since("bodies")),
    mailbox: await look(asIds(mailboxMails), asIds(mailboxMails).id, since("bodies")),
    inbound: await look(asIds(inboundEmails), asIds(inboundEmails).id, since("inbound")),
    deliveries: await look(asIds(deliveries), asIds(deliveries).id, since("deliveries")),
    events: await look(asIds(events), asIds(events).id, `evt_${since("events")}`),
    log: await look(asIds(requestLog), asIds(requestLog).id, since("log")),
  }
}

const LIMITS = { messages: 90, bodies: 30, inbound: 30, deliveries: 30, events: 30, log: 7 }

test("over ten months the database stays bounded, nothing open or young goes, and totals stay right", async () => {
  const owner = await addProject(store)
  const blobs = openBlobs(join(folder, "blobs"))
  const disk = { free_bytes: () => Number.POSITIVE_INFINITY }
  const round = tidyRounds(store, settings(), { blobs, inbound_blobs: blobs, disk })
  clock.freeze()
  clock.advance({ seconds: -DAYS * DAY_SECONDS })
  const a_day = sizes.retained
  const open: string[] = []
  const lengths: number[] = []
  for (let day = 1; day <= DAYS; day++) {
    const rows = new Day()
    for (let nth = 0; nth < a_day; nth++) addMessage(rows, owner, OVER)
    if (day % STEP === 1) open.push(addMessage(rows, owner, HELD))
    await store.tx((tx) => rows.write(tx, owner))
    clock.advance({ seconds: DAY_SECONDS })
    if (day % STEP === 0) await round()
    if (day % MONTH !== 0) continue
    lengths.push(await size())
  }

  // Four months fill what is kept. From then on the database has its length.
  const [fourth = 0, last = 0] = [lengths[3], lengths.at(-1)]
  expect(Math.max(...lengths.slice(4)) / fourth).toBeLessThan(1.25)
  const pages = filePages(store) // of SQLite, whose free pages go back to the disk
  if (pages) expect(last).toBeLessThan((pages.all - pages.free) * PAGE * 1.06 + 2048 * PAGE)
  expect(await countOf(messages, inArray(messages.id, open))).toBe(open.length)
  expect(await countOf(messageContents, inArray(messageContents.message_id, open))).toBe(
    open.length,
  )

  const { messages: all, contents, ...others } = await kept(LIMITS)
  const old = (days: number) => open.length - Math.ceil(days / STEP)
  expect(all).toEqual([90 * a_day + 90 / STEP + old(90), 90 * a_day + 90 / STEP])
  expect(contents).toEqual([30 * a_day + 30 / STEP + old(30), 30 * a_day + 30 / STEP])
  for (const name of ["mailbox", "inbound", "deliveries", "events"] as const) {
    expect([name, ...others[name]]).toEqual([name, ...Array(2).fill(30 * a_day + 30 / STEP)])
  }
  expect(others.log).toEqual(Array(2).fill(7 * a_day + 1))

  const ours = eq(messages.project_id, owner.project_id)
  const names = ["email", "email.delivered", "mailbox_mails", "inbound_emails"]
  const told = await totals(store.read, owner.project_id, names)
  expect([...told.values()]).toEqual([
    await countOf(messages, ours),
    await countOf(messages, eq(messages.state, OVER)),
    await countOf(mailboxMails),
    await countOf(inboundEmails),
  ])
}, 1_800_000)
