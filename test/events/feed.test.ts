import { expect, test } from "bun:test"
import { ApiError } from "../../src/core/errors"
import { firstIdAt } from "../../src/core/ids"
import { millis } from "../../src/core/time"
import { emit, emitAll, onEmitted } from "../../src/events/emit"
import * as feed from "../../src/events/feed"
import type { Store } from "../../src/store/store"
import { movableClock } from "../harness/clock"
import { idFor } from "../harness/ids"
import { quietLog } from "../harness/quiet"
import { testStore } from "../harness/store"
import { refusal } from "../store/facts"

quietLog()
const clock = movableClock()

const PROJECT = idFor("project_1")
const everything = { limit: 100, types: [] }

const fact = (type: string, project_id = PROJECT, subject_id: string | null = null) => ({
  account_id: idFor("account_1"),
  project_id,
  subject_id,
  type,
  data: { n: type },
})

const tell = (store: Store, ...types: string[]) =>
  store.tx((tx) =>
    emitAll(
      tx,
      types.map((type) => fact(type)),
    ),
  )

const types = (rows: feed.Event[]) => rows.map(({ type }) => type)

const read = async (...given: Parameters<typeof feed.read>) => (await feed.read(...given)).rows
const readBack = async (...given: Parameters<typeof feed.readBack>) =>
  (await feed.readBack(...given)).rows
const readWaiting = async (...given: Parameters<typeof feed.readWaiting>) =>
  (await feed.readWaiting(...given)).rows

async function readAll(store: Store, limit: number, wanted: string[] = []) {
  const seen: feed.Event[] = []
  for (;;) {
    const after = seen.at(-1)?.id
    const rows = await read(store.read, PROJECT, { after, limit, types: wanted })
    if (rows.length === 0) return seen
    seen.push(...rows)
  }
}

/** Why a cursor was refused. */
async function reason(reading: Promise<unknown>): Promise<unknown> {
  const error = await reading.catch((one: unknown) => one)
  if (!(error instanceof ApiError)) throw new Error("nothing was refused")
  return { code: error.code, reason: (error.details as { reason?: string }).reason }
}

test("the order of the feed is the order of the commits", async () => {
  await using it = await testStore()
  const names = Array.from({ length: 60 }, (_, n) => `t${n}`)
  for (const name of names) await tell(it.store, `${name}.a`, `${name}.b`)

  const expected = names.flatMap((name) => [`${name}.a`, `${name}.b`])
  expect(types(await readAll(it.store, 7))).toEqual(expected)
  expect(types(await readAll(it.store, 100))).toEqual(expected)
})

test("events told together by many closures are read once each", async () => {
  await using it = await testStore()
  await Promise.all(Array.from({ length: 100 }, (_, n) => tell(it.store, `a${n}`, `b${n}`)))

  const seen = types(await readAll(it.store, 9))
  expect(seen).toHaveLength(200)
  expect(new Set(seen).size).toBe(200)
})

test("a reader who follows while others write misses nothing", async () => {
  await using it = await testStore()
  const { store } = it
  const seen: string[] = []
  let after: string | undefined
  const writers = Array.from({ length: 8 }, async (_, writer) => {
    for (let n = 0; n < 25; n++) await tell(store, `w${writer}.${n}`)
  })
  const written = Promise.all(writers)

  const signal = new AbortController().signal
  while (seen.length < 200) {
    const query = { after, limit: 20, types: [] }
    const rows = await readWaiting(store.read, PROJECT, query, 5000, signal)
    after = rows.at(-1)?.id ?? after
    seen.push(...types(rows))
  }
  await written
  expect(new Set(seen).size).toBe(200)
  expect(await read(store.read, PROJECT, { after, limit: 10, types: [] })).toEqual([])
})

test.each([
  [["email.*"], ["email.sent", "email.failed"]],
  [["email.sent"], ["email.sent"]],
  [
    ["sms.sent", "email.failed"],
    ["sms.sent", "email.failed"],
  ],
  [["*"], ["email.sent", "sms.sent", "emailish.sent", "email.failed"]],
  [["email_*"], []],
])("the types %j are wanted: %j", async (wanted, expected) => {
  await using it = await testStore()
  await tell(it.store, "email.sent", "sms.sent", "emailish.sent", "email.failed")

  expect(types(await readAll(it.store, 2, wanted))).toEqual(expected)
})

test("nobody reads another project's events, nor uses its cursor", async () => {
  await using it = await testStore()
  const { store } = it
  await tell(store, "ours")
  await store.tx((tx) => emit(tx, fact("theirs", idFor("project_2"), idFor("subject"))))
  const [theirs] = await read(store.read, idFor("project_2"), everything)

  expect(types(await readAll(store, 10))).toEqual(["ours"])
  const foreign = { after: theirs?.id, limit: 10, types: [] }
  expect(await reason(read(store.read, PROJECT, foreign))).toEqual({
    code: "validation_error",
    reason: "unknown_event",
  })
  expect(await feed.about(store.read, PROJECT, idFor("subject"))).toEqual([])
})

test("a cursor that nobody ever gave out is refused", async () => {
  await using it = await testStore()
  await tell(it.store, "one")

  for (const after of ["evt_none", "evt_", "' OR 1=1 --"]) {
    const query = { after, limit: 10, types: [] }
    expect(await reason(read(it.store.read, PROJECT, query))).toMatchObject({
      reason: "unknown_event",
    })
  }
})

test("a cursor is good for thirty days, then it is refused", async () => {
  await using it = await testStore()
  await tell(it.store, "old", "next")
  const [old] = await read(it.store.read, PROJECT, everything)
  const query = { after: old?.id, limit: 10, types: [] }

  clock.advance({ seconds: 29 * 86_400 })
  expect(types(await read(it.store.read, PROJECT, query))).toEqual(["next"])
  clock.advance({ seconds: 2 * 86_400 })
  expect(await reason(read(it.store.read, PROJECT, query))).toEqual({
    code: "validation_error",
    reason: "cursor_expired",
  })
})

test("a cursor whose event was removed for its age is refused as one that is too old", async () => {
  await using it = await testStore()
  const at = (days: number) => `evt_${firstIdAt(millis() - days * 86_400_000)}`
  const why = (after: string) =>
    reason(read(it.store.read, PROJECT, { after, limit: 10, types: [] }))
  expect(await why(at(31))).toEqual({ code: "validation_error", reason: "cursor_expired" })
  expect(await why(at(29))).toEqual({ code: "validation_error", reason: "unknown_event" })
})

test("who asks for some types goes on behind the others, never back and never past unseen ones", async () => {
  await using it = await testStore()
  const { store } = it
  const passable = async (after?: string) => (await feed.passable(store.read, PROJECT, after))?.id
  expect(await passable()).toBeUndefined()
  await tell(store, "a", "b")
  const signal = new AbortController().signal
  const [a, b] = await readWaiting(store.read, PROJECT, everything, 20_000, signal)
  expect([await passable(), await passable(a?.id), await passable(b?.id)]).toEqual([
    b?.id,
    b?.id,
    b?.id,
  ])
  clock.advance({ seconds: 31 * 86_400 })
  expect(await passable()).toBeUndefined()
})

test("who waits for nothing gets nothing when the time is over, or when he leaves", async () => {
  await using it = await testStore()
  const signal = new AbortController().signal
  expect(await readWaiting(it.store.read, PROJECT, everything, 5, signal)).toEqual([])

  const leaving = new AbortController()
  const left = readWaiting(it.store.read, PROJECT, everything, 60_000, leaving.signal)
  leaving.abort()
  expect(await left).toEqual([])
})

test("a closure that fails tells nobody anything", async () => {
  await using it = await testStore()
  let rings = 0
  const off = onEmitted(it.store.read, () => rings++)

  const failing = it.store.tx(async (tx) => {
    await emit(tx, fact("never"))
    throw new Error("no fact")
  })
  await refusal(failing)
  expect(await readAll(it.store, 10)).toEqual([])
  expect(rings).toBe(0)
  off()
})

test("a reader without a cursor begins where events are still readable", async () => {
  await using it = await testStore()
  await tell(it.store, "email.queued")
  clock.advance({ seconds: 31 * 86_400 })
  await tell(it.store, "email.sent")
  expect(types(await read(it.store.read, PROJECT, everything))).toEqual(["email.sent"])
})

test("read backwards, the feed gives what stands nearest before, oldest first", async () => {
  await using it = await testStore()
  for (const name of ["a", "b", "c", "d", "e"]) await tell(it.store, `email.${name}`)
  const back = (before: string, limit: number, types: string[] = []) =>
    readBack(it.store.read, PROJECT, { before, limit, types })
  const latest = await back("", 2)
  expect(types(latest)).toEqual(["email.d", "email.e"])
  expect(types(await back(latest[0]?.id ?? "", 2))).toEqual(["email.b", "email.c"])
  expect(types(await back(latest[0]?.id ?? "", 100))).toEqual(["email.a", "email.b", "email.c"])
  expect(types(await back("", 1, ["email.b"]))).toEqual(["email.b"])
  expect(await reason(back("evt_none", 1))).toEqual({
    code: "validation_error",
    reason: "unknown_event",
  })
})

test("a look for some types stops behind 1,000 events, and the next one goes on from there", async () => {
  await using it = await testStore()
  const { store } = it
  await tell(store, "wanted", ...Array(2500).fill("other"), "wanted")
  const places: (number | undefined)[] = []
  for (let from: feed.FeedPosition | undefined; ; ) {
    const query = { from, limit: 10, types: ["wanted"] }
    const { rows, end } = await feed.read(store.read, PROJECT, query)
    places.push(rows.length)
    if (!end) break
    from = end
  }
  expect(places).toEqual([1, 0, 1])
  const last = await feed.readBack(store.read, PROJECT, { before: "", limit: 10, types: ["none"] })
  expect([last.rows, typeof last.end?.id]).toEqual([[], "string"])
  const waiting = { limit: 10, types: ["none"] }
  const { signal } = new AbortController()
  const part = await feed.readWaiting(store.read, PROJECT, waiting, 20_000, signal)
  expect(part).toMatchObject({ rows: [], end: { id: expect.any(String) } })
})

test("events that are kept for longer than they can be read are passed in one step", async () => {
  await using it = await testStore()
  const { store } = it
  for (const _ of Array(3)) await tell(store, ...Array(900).fill("old"))
  clock.advance({ seconds: 31 * 86_400 })
  for (const type of ["new", "newer", "newest"]) await tell(store, type)
  expect(types(await read(store.read, PROJECT, everything))).toEqual(["new", "newer", "newest"])
  const back = { before: "", limit: 100, types: [] }
  expect(types(await readBack(store.read, PROJECT, back))).toEqual(["new", "newer", "newest"])
})
