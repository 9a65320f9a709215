import { expect, test } from "bun:test"
import { asc } from "drizzle-orm"
import { now, secondsFromNow } from "../../src/core/time"
import { deferAll } from "../../src/emails/email-context"
import { READY } from "../../src/jobs/work-item"
import { asTheyStand } from "../../src/messages/message-list"
import * as pipeline from "../../src/messages/pipeline"
import { type MessageActivity, watch } from "../../src/messages/status-changes"
import { messages } from "../../src/messages/tables"
import { idFor } from "../harness/ids"
import { quietLog } from "../harness/quiet"
import { testStore } from "../harness/store"
import { byHand } from "./by-hand"
import { letter, PROJECT, read } from "./letters"

quietLog()

function to(email: string, cc: string[] = [], more: Parameters<typeof letter>[0] = {}) {
  const made = letter({ address: email, ...more }, cc)
  const recipients = made.recipients.map((one, n) => (n === 0 ? { ...one, email } : one))
  return { ...made, recipients }
}

test("who waits for a crowded domain is given turns together, and nobody else", async () => {
  await using it = await testStore()
  const { store } = it
  const crowd = Array.from({ length: 250 }, (_, n) => to(`user${n}@slow.test`))
  const others = [
    to("ann@quick.test"),
    to("ann@slow.test", ["kim@quick.test"]),
    to("ann@notslow.test"),
    to("code@slow.test", [], { stream: "auth" }),
  ]
  await store.tx((tx) => pipeline.accept(tx, [...crowd, ...others]))

  const counts: number[] = []
  const turn = (count: number) => {
    counts.push(count)
    return { until: secondsFromNow(60 * counts.length), reason: "slow.test is crowded" }
  }
  expect(await deferAll(store, "email", { domain: "slow.test" }, turn)).toBe(250)
  expect(counts).toEqual([100, 100, 50])
  expect(await deferAll(store, "email", { domain: "slow.test" }, turn)).toBe(0)

  const rows = await store.read.select().from(messages).orderBy(asc(messages.id))
  const waiting = rows.filter(({ run_at }) => run_at > now())
  expect(waiting.map(({ id }) => id)).toEqual(crowd.map(({ id }) => id).toSorted())
  expect(new Set(waiting.map(({ run_at }) => run_at)).size).toBe(3)
  expect(rows.filter(({ state, attempt }) => state === READY && attempt === 0)).toHaveLength(254)

  const told = await asTheyStand(store.read, await store.read.select().from(messages))
  const reasons = new Map(told.map(({ id, ...message }) => [id, message]))
  for (const { id } of crowd) {
    expect(reasons.get(id)).toMatchObject({
      status: "queued",
      status_reason: "slow.test is crowded",
      next_attempt_at: expect.any(String),
    })
  }
  for (const { id } of others) expect(reasons.get(id)?.status_reason).toBeNull()
})

test.each([true, false])("what is claimed is left to its attempt, alone: %p", async (alone) => {
  await using it = await testStore()
  const { store } = it
  const [waiting, claimed] = [to("ann@slow.test"), to("kim@slow.test")]
  await store.tx((tx) => pipeline.accept(tx, [claimed]))
  const never = { deliver: () => Promise.reject(new Error("nobody asked")) }
  const channels = { email: never, push: never, sms: never, in_app: never }
  await byHand(store, channels, { alone }).claimOne()
  await store.tx((tx) => pipeline.accept(tx, [waiting]))

  const until = secondsFromNow(60)
  const nextSlot = () => ({ until, reason: "crowded" })
  expect(await deferAll(store, "email", { domain: "slow.test" }, nextSlot)).toBe(1)
  const deferred = { status: "queued", status_reason: "crowded", next_attempt_at: until }
  expect(await read(store.read, waiting.id)).toMatchObject(deferred)
  expect(await read(store.read, claimed.id)).toMatchObject({
    status: "sending",
    status_reason: null,
  })
})

test("who watches is told of it, also of a domain in other letters than it was written in", async () => {
  await using it = await testStore()
  const { store } = it
  const told: MessageActivity[] = []
  const off = watch(store.read, (activity) => void told.push(activity))
  const all = [to("ann@münchen.test"), to("kim@MÜNCHEN.test"), to("sam@quick.test")]
  await store.tx((tx) => pipeline.accept(tx, all))
  told.length = 0
  const until = secondsFromNow(60)
  const count = await deferAll(store, "email", { domain: "xn--mnchen-3ya.test" }, () => ({
    until,
    reason: "crowded",
  }))
  off()
  expect(count).toBe(2)
  expect(told.map(({ recipient }) => recipient).toSorted()).toEqual([
    "ann@münchen.test",
    "kim@MÜNCHEN.test",
  ])
  expect(told[0]).toMatchObject({
    status: "queued",
    status_reason: "crowded",
    event_type: null,
    next_attempt_at: until,
  })
})

test("what waits for the provider of a project goes wherever it likes, but not to the sandbox", async () => {
  await using it = await testStore()
  const { store } = it
  const theirs = [to("ann@one.test"), to("kim@two.test", ["sam@three.test"])]
  const others = [
    to("ann@one.test", [], { project_id: idFor("project_2") }),
    to("ann@one.test", [], { sandbox: true }),
    to("code@one.test", [], { stream: "auth" }),
  ]
  await store.tx((tx) => pipeline.accept(tx, [...theirs, ...others]))
  const until = secondsFromNow(60)
  const turn = () => ({ until, reason: "smtp is slow" })
  expect(await deferAll(store, "email", { project_id: PROJECT }, turn)).toBe(2)
  for (const { id } of theirs) {
    expect(await read(store.read, id)).toMatchObject({ next_attempt_at: until })
  }
  for (const { id } of others) {
    expect(await read(store.read, id)).toMatchObject({ next_attempt_at: null })
  }
})
