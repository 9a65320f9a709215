import { expect, test } from "bun:test"
import { asc, eq } from "drizzle-orm"
import { newEventId, newId } from "../../src/core/ids"
import { now } from "../../src/core/time"
import { events } from "../../src/events/tables"
import { idempotency } from "../../src/http/tables"
import { jobs } from "../../src/jobs/tables"
import { mailboxMails } from "../../src/mailbox/tables"
import { inserter, newRowInserter } from "../../src/store/statements"
import type { Store, Tx } from "../../src/store/store"
import { counters } from "../../src/store/tables"
import { idFor } from "../harness/ids"
import { quietLog } from "../harness/quiet"
import { testStore } from "../harness/store"
import { refusal } from "./facts"

quietLog()

const insertEvents = inserter(events)
const insertMails = inserter(mailboxMails)
const insertCounters = inserter(counters)
const insertNew = newRowInserter(idempotency, "request")

const event = (data: Record<string, unknown>, type = "t") => ({
  id: newEventId(),
  account_id: idFor("a"),
  project_id: idFor("p"),
  subject_id: null,
  type,
  data,
  detail: null,
  created_at: now(),
})

const mail = (raw: Uint8Array, subject = "s") => ({
  id: newId(),
  project_id: idFor("p"),
  account_id: idFor("a"),
  email_id: null,
  mail_from: "a@example.test",
  recipients: ["b@example.test"],
  to_address: "b@example.test",
  from_address: "a@example.test",
  subject,
  subject_key: subject,
  raw: Buffer.from(raw),
  size: raw.length,
  created_at: now(),
})

const claim = (request: string, answer = "{}") => ({
  request,
  project_id: idFor("p"),
  body_hash: "h",
  status: 201,
  answer,
  created_at: now(),
})

/** Both ways of writing a row: the builder's and the hot path's. */
const ways: [string, (tx: Tx, row: ReturnType<typeof event>) => Promise<unknown>][] = [
  ["the builder", async (tx, row) => tx.insert(events).values(row)],
  ["an inserter", (tx, row) => insertEvents(tx, [row])],
]

const values: [string, unknown][] = [
  ["an object", { name: "Zoë 🔔", tags: ["q\"'", "back\\slash", "%_?$1"] }],
  ["a list", [1, 2.5, -0.1, 1e300, true, null, []]],
  ["a NUL", "before\u0000after"],
  ["what looks like an escape", "\\u0000 \\ud800 \\n"],
  ["half a surrogate pair", "\ud800 and \udfff"],
  ["line separators", "\u2028\u2029\u0085\r\n\t"],
  ["a text that looks like JSON", '{"a":1}'],
  ["the largest exact number", Number.MAX_SAFE_INTEGER],
  ["false", false],
  ["null", null],
]

test.each(ways)("by %s, every value comes back from a json column as it was", async (_, write) => {
  await using it = await testStore()

  await it.store.tx(async (tx) => {
    for (const [name, value] of values) await write(tx, event({ value }, name))
  })
  const rows = await it.store.read.select().from(events)
  const back = rows.map(({ type, data }) => [type, data.value])
  expect(Object.fromEntries(back)).toEqual(Object.fromEntries(values))
  expect(rows.map(({ detail }) => detail)).toEqual(values.map(() => null))
})

const everyByte = Uint8Array.from({ length: 256 }, (_, n) => n)

test.each([
  ["every byte there is", everyByte],
  ["no bytes", new Uint8Array()],
  ["a megabyte", new Uint8Array(1_048_576).map((_, n) => (n * 31) % 251)],
])("%s come back as they were, by the builder and by an inserter", async (_, bytes) => {
  await using it = await testStore()

  await it.store.tx(async (tx) => {
    await tx.insert(mailboxMails).values(mail(bytes))
    await insertMails(tx, [mail(bytes)])
  })
  const rows = await it.store.read.select({ raw: mailboxMails.raw }).from(mailboxMails)
  expect(rows.map(({ raw }) => Buffer.compare(Buffer.from(bytes), raw))).toEqual([0, 0])
})

test.each(["", "'; DROP TABLE jobs; --", '\\"{}[]', "Zoë 🔔", "\t\r\n", "$1 ? :a %s"])(
  "the text %j comes back as it was",
  async (subject) => {
    await using it = await testStore()

    await it.store.tx((tx) => insertMails(tx, [mail(new Uint8Array(), subject)]))
    const [row] = await it.store.read.select().from(mailboxMails)
    expect(row?.subject).toBe(subject)
  },
)

test("numbers are exact up to 2^53, on either side of zero", async () => {
  await using it = await testStore()
  const numbers = [0, 1, -1, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER]

  const rows = numbers.map((value, shard) => ({ project_id: idFor("p"), name: "n", shard, value }))
  await it.store.tx((tx) => insertCounters(tx, rows))
  const back = await it.store.read.select().from(counters).orderBy(asc(counters.shard))
  expect(back.map(({ value }) => value)).toEqual(numbers)
})

test("an inserter writes many rows, and a missing value is NULL", async () => {
  await using it = await testStore()
  const rows = Array.from({ length: 500 }, (_, n) => event({ n }, `type ${n}`))
  const { detail: _, subject_id: __, ...bare } = event({ n: 500 }, "type 500")

  await it.store.tx((tx) => insertEvents(tx, [...rows, bare]))
  const back = await it.store.read.select().from(events).orderBy(asc(events.id))
  expect(back.map(({ data }) => data.n)).toEqual(Array.from({ length: 501 }, (_, n) => n))
  expect(back.at(-1)).toMatchObject({ detail: null, subject_id: null })
})

test("an inserter of nothing writes nothing", async () => {
  await using it = await testStore()

  await it.store.tx((tx) => insertEvents(tx, []))
  expect(await it.store.tx((tx) => insertNew(tx, []))).toEqual(new Set())
  expect(await it.store.read.select().from(events)).toEqual([])
})

test("an inserter takes no row twice: the whole closure is undone", async () => {
  await using it = await testStore()
  const twice = event({})

  const refused = it.store.tx(async (tx) => {
    await insertEvents(tx, [event({ first: true })])
    await insertEvents(tx, [twice, twice])
  })
  await refusal(refused)
  expect(await it.store.read.select().from(events)).toEqual([])
})

const answers = async (store: Store) => {
  const rows = await store.read.select().from(idempotency).orderBy(asc(idempotency.request))
  return rows.map(({ request, answer }) => `${request}: ${answer}`)
}

test("a new-row inserter leaves what exists alone, and says what is new", async () => {
  await using it = await testStore()
  const { store } = it
  const first = await store.tx((tx) => insertNew(tx, [claim("a", "1"), claim("b", "1")]))
  const second = await store.tx((tx) =>
    insertNew(tx, [claim("a", "2"), claim("c", "2"), claim("b", "2")]),
  )
  expect([first, second]).toEqual([new Set(["a", "b"]), new Set(["c"])])
  expect(await answers(store)).toEqual(["a: 1", "b: 1", "c: 2"])
})

test("of two equal rows in one call the first one is the new one", async () => {
  await using it = await testStore()

  const fresh = await it.store.tx((tx) =>
    insertNew(tx, [claim("a", "first"), claim("a", "second"), claim("b", "only")]),
  )
  expect(fresh).toEqual(new Set(["a", "b"]))
  expect(await answers(it.store)).toEqual(["a: first", "b: only"])
})

test("of many closures with the same row exactly one hears that it is new", async () => {
  await using it = await testStore()

  const all = Array.from({ length: 30 }, (_, n) =>
    it.store.tx((tx) => insertNew(tx, [claim("same", `${n}`)])),
  )
  const winners = (await Promise.all(all)).filter((fresh) => fresh.has("same"))
  expect(winners).toHaveLength(1)
})

test("a row that was undone is new for the next one", async () => {
  await using it = await testStore()

  const undone = it.store.tx(async (tx) => {
    await insertNew(tx, [claim("a", "undone")])
    throw new Error("undo")
  })
  await refusal(undone)
  expect(await it.store.tx((tx) => insertNew(tx, [claim("a", "kept")]))).toEqual(new Set(["a"]))
})

test("keys sort by byte", async () => {
  await using it = await testStore()
  const keys = ["b", "B", "a", "_", "ä", "A", "~", "0"]

  await it.store.tx((tx) =>
    insertNew(
      tx,
      keys.map((key) => claim(key)),
    ),
  )
  const { request } = idempotency
  const rows = await it.store.read.select({ request }).from(idempotency).orderBy(asc(request))
  expect(rows.map((row) => row.request)).toEqual(["0", "A", "B", "_", "a", "b", "~", "ä"])
  const same = it.store.read.select().from(idempotency).where(eq(request, "B"))
  expect(await same).toHaveLength(1)
})

test("ids sort as their texts do", async () => {
  await using it = await testStore()
  const ids = ["ff", "7f", "80", "00ff", "0100", "0f", "a0", "9f"].map(
    (hex) => `${hex.padEnd(8, "0")}-0000-7000-8000-000000000000`,
  )
  const job = { name: "n", payload: {}, state: 0, priority: 1, attempt: 0 }
  const times = { run_at: now(), created_at: now() }

  await it.store.tx(async (tx) => {
    await tx.insert(jobs).values(ids.map((id) => ({ ...job, ...times, id })))
  })
  const rows = await it.store.read.select({ id: jobs.id }).from(jobs).orderBy(asc(jobs.id))
  expect(rows.map(({ id }) => id)).toEqual(ids.toSorted())
  for (const id of ids) {
    expect(await it.store.read.select().from(jobs).where(eq(jobs.id, id))).toHaveLength(1)
  }
})
