import { afterAll, expect, test } from "bun:test"
import { randomBytes } from "node:crypto"
import { statSync } from "node:fs"
import { join } from "node:path"
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
import { tidyRounds } from "../../src/operations/tidy"
import { requestLog } from "../../src/request-log/tables"
import { bumpAll, totals } from "../../src/store/counters"
import { filePages } from "../../src/store/free-pages"
import type { Tx } from "../../src/store/store"
import { deliveries } from "../../src/webhooks/tables"
import { movableClock } from "../harness/clock"
import { addProject } from "../harness/project-rows"
import { quietLog } from "../harness/quiet"
import { sizes } from "../harness/sizes"
import { testStore } from "../harness/store"
import { sampleRow } from "../harness/table-rows"

quietLog()

const base = await testStore("sqlite")
afterAll(() => base[Symbol.asyncDispose]())
const { store, folder } = base
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

const insert = (tx: Tx, table: SQLiteTable, given: Record<string, unknown>) =>
  tx.insert(table).values(sampleRow(table, given) as never)

/** One endpoint gets everything. */
const webhook_id = newId()

/** A message that was delivered, with all that a delivery leaves behind. */
async function addMessage(tx: Tx, owner: Owner, state: number): Promise<string> {
  const id = idNow()
  const large = randomBytes(1500).toString("hex")
  const status = state === OVER ? "delivered" : "queued"
  const lists = { tags: ["one"], recipients: [] }
  await insert(tx, messages, { ...owner, ...lists, id, state, status, channel: "email" })
  await insert(tx, messageContents, { message_id: id, content: { text: large } })
  await insert(tx, messageRaws, { message_id: id, raw: Buffer.from(large) })
  await insert(tx, messageTags, { ...owner, tag: "one", message_id: id })
  await insert(tx, attempts, { message_id: id })
  const event_id = `evt_${idNow()}`
  await insert(tx, events, { ...owner, id: event_id, subject_id: id, position: 1 })
  await insert(tx, deliveries, { ...owner, webhook_id, id: idNow(), event_id, state: OVER })
  await insert(tx, requestLog, { ...owner, id: idNow() })
  const mail_id = idNow()
  await insert(tx, mailboxMails, { ...owner, id: mail_id, raw: Buffer.from(large), recipients: [] })
  await insert(tx, mailboxRecipients, { ...owner, mail_id })
  const inbound_id = idNow()
  await insert(tx, inboundEmails, { ...owner, id: inbound_id, status: "processed" })
  await insert(tx, inboundContents, { inbound_id })
  await insert(tx, inboundRaws, { inbound_id, raw: Buffer.from(large) })
  const counted = ["email", "mailbox_mails", "inbound_emails", `email.${status}`]
  const changes = counted
    .filter((name) => name !== "email.queued")
    .map((name) => [name, 1] as const)
  await bumpAll(tx, owner.project_id, new Map(changes))
  return id
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

test("over ten months the file stays bounded, nothing open or young goes, and totals stay right", async () => {
  const owner = await addProject(store)
  const blobs = openBlobs(join(folder, "blobs"))
  const disk = { free_bytes: () => Number.POSITIVE_INFINITY }
  const round = tidyRounds(store, settings(), { blobs, inbound_blobs: blobs, disk })
  clock.freeze()
  clock.advance({ seconds: -DAYS * DAY_SECONDS })
  const a_day = sizes.retained
  const open: string[] = []
  const lengths: number[] = []
  const used: number[] = []
  for (let day = 1; day <= DAYS; day++) {
    await store.tx(async (tx) => {
      for (let nth = 0; nth < a_day; nth++) await addMessage(tx, owner, OVER)
      if (day % STEP === 1) open.push(await addMessage(tx, owner, HELD))
    })
    clock.advance({ seconds: DAY_SECONDS })
    if (day % STEP === 0) await round()
    if (day % MONTH !== 0) continue
    await store.emptyLog()
    lengths.push(statSync(join(folder, "test.db")).size)
    const { all = 0, free = 0 } = filePages(store) ?? {}
    used.push((all - free) * PAGE)
  }

  // Four months fill what is kept. From then on the file has its length.
  const [fourth = 0, last = 0] = [lengths[3], lengths.at(-1)]
  expect(Math.max(...lengths.slice(4)) / fourth).toBeLessThan(1.25)
  expect(last).toBeLessThan((used.at(-1) ?? 0) * 1.06 + 2048 * PAGE)
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
}, 120_000)
