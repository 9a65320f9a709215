import { expect, test } from "bun:test"
import { events } from "../../src/events/tables"
import { PRIORITIES, READY } from "../../src/jobs/work-item"
import * as pipeline from "../../src/messages/pipeline"
import type { Message } from "../../src/messages/status-changes"
import { watch } from "../../src/messages/status-changes"
import { messageContents, messages, messageTags } from "../../src/messages/tables"
import { totals } from "../../src/store/counters"
import { idFor } from "../harness/ids"
import { quietLog } from "../harness/quiet"
import { type TestStore, testStore } from "../harness/store"
import { refusal } from "../store/facts"
import { giveUp } from "./by-hand"
import { leased, letter, PROJECT, read, story } from "./letters"

quietLog()

async function traces({ store }: TestStore) {
  const tables = [messages, messageContents, messageTags, events]
  const counts = await Promise.all(tables.map((table) => store.read.select().from(table)))
  return counts.map((rows) => rows.length)
}

test("an accepted message is there whole: row, content, tags, events, its place in the queue, totals", async () => {
  await using it = await testStore()
  const message = letter(
    { tags: ["a", "b", "a"], metadata: { order: { id: 7 } }, sandbox: true, subject: "Zoë 🔔" },
    ["cc@example.test"],
    ["bcc@example.test"],
  )
  const [accepted] = await it.store.tx((tx) => pipeline.accept(tx, [message]))

  const row = await read(it.store.read, message.id)
  const { content, ...rest } = message
  expect(row).toMatchObject(accepted as Message)
  expect(row).toMatchObject({ ...rest, status: "queued", attempts: 0 })
  const [kept] = await it.store.read.select().from(messageContents)
  expect(kept?.content).toEqual(content)
  expect(await story(it.store.read, message.id)).toEqual([
    "email.queued to",
    "email.queued cc",
    "email.queued bcc",
  ])
  expect(row).toMatchObject({
    state: READY,
    priority: PRIORITIES.normal,
    run_at: row.created_at,
    attempt: 0,
    owner: null,
  })
  expect(await traces(it)).toEqual([1, 1, 2, 3])
  const sums = await totals(it.store.read, PROJECT, ["email", "email.sent"])
  expect(Object.fromEntries(sums)).toEqual({ email: 1, "email.sent": 0 })
})

test("many messages of several projects enter together, each total right", async () => {
  await using it = await testStore()
  const list = Array.from({ length: 100 }, (_, n) =>
    letter({ project_id: idFor(`project_${n % 3}`) }),
  )

  await it.store.tx((tx) => pipeline.accept(tx, list))
  expect(await traces(it)).toEqual([100, 100, 0, 100])
  const sums = await Promise.all(
    [0, 1, 2].map((n) => totals(it.store.read, idFor(`project_${n}`), ["email"])),
  )
  expect(sums.map((sum) => sum.get("email"))).toEqual([34, 33, 33])
})

test("one message that cannot be written keeps all others out, too", async () => {
  await using it = await testStore()
  const twin = letter()

  const refused = it.store.tx((tx) => pipeline.accept(tx, [letter(), twin, twin]))
  await refusal(refused)
  expect(await traces(it)).toEqual([0, 0, 0, 0])
})

test("a transaction that fails after accepting leaves no trace, and tells nobody", async () => {
  await using it = await testStore()
  const seen: string[] = []
  const off = watch(it.store.read, ({ event_type }) => seen.push(event_type ?? ""))

  const failing = it.store.tx(async (tx) => {
    await pipeline.accept(tx, [letter({ tags: ["a"] })])
    throw new Error("quota exceeded")
  })
  expect(await refusal(failing)).toBe("quota exceeded")
  expect(await traces(it)).toEqual([0, 0, 0, 0])
  const sums = await totals(it.store.read, PROJECT, ["email"])
  expect(sums.get("email")).toBe(0)

  await it.store.tx((tx) => pipeline.accept(tx, [letter()]))
  await Bun.sleep(0)
  expect(seen).toEqual(["email.queued"])
  off()
})

test.each([
  ["auth", PRIORITIES.urgent],
  ["transactional", PRIORITIES.normal],
  ["broadcast", PRIORITIES.bulk],
] as const)("the stream %s has its own place in the queue", async (stream, priority) => {
  await using it = await testStore()

  await it.store.tx((tx) => pipeline.accept(tx, [letter({ stream })]))
  expect(await it.store.read.select().from(messages)).toMatchObject([{ priority }])
})

test("accepting nothing writes nothing", async () => {
  await using it = await testStore()

  expect(await it.store.tx((tx) => pipeline.accept(tx, []))).toEqual([])
  expect(await traces(it)).toEqual([0, 0, 0, 0])
})

test("a message that is gone, or has nobody left, is not delivered again", async () => {
  await using it = await testStore()
  const channel = { deliver: () => Promise.reject(new Error("nobody asked")) }
  const channels = { email: channel, push: channel, sms: channel, in_app: channel }
  const message = letter()
  await it.store.tx((tx) => pipeline.accept(tx, [message]))
  await giveUp(it.store, message.id, "given up")
  const left = await leased(it.store, message.id, 0)
  const deliver = (recheck: () => Promise<Message | undefined>) =>
    pipeline.deliver(it.store, channels, left, recheck)

  expect(await deliver(async () => undefined)).toEqual({})
  expect(await deliver(async () => left)).toEqual({})
  expect(await read(it.store.read, message.id)).toMatchObject({ status: "failed", attempts: 0 })
})
