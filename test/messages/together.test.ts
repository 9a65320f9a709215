import { expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { now } from "../../src/core/time"
import { OVER } from "../../src/jobs/work-item"
import { feedback, type SettledMessage, settle } from "../../src/messages/settle"
import { messageRaws } from "../../src/messages/tables"
import type { RecipientOutcome } from "../../src/providers/provider"
import { totals } from "../../src/store/counters"
import { idFor } from "../harness/ids"
import { quietLog } from "../harness/quiet"
import { byHand } from "./by-hand"
import { letter, outcome, PROJECT, told } from "./letters"
import { type PostOffice, postOffice } from "./post-office"

quietLog()

const TO = "to@example.test"
const CC = "cc@example.test"

interface Attempts {
  list?: RecipientOutcome[]
  keep?: Buffer
}

/** What a first attempt came to, for `to@` alone where nothing else is said. */
const attempted = (id: string, { list, keep }: Attempts = {}): SettledMessage => ({
  row: { id, attempt: 1 },
  end: {
    outcome: outcome(list ?? [told(TO, { status: "delivered" })]),
    started_at: new Date().toISOString(),
    duration_ms: 5,
    attempt: 1,
    keep,
  },
  after: { state: OVER, run_at: now(), attempt: 1, owner: null, lease_until: null },
  reason: null,
})

const counts = ({ store }: PostOffice, project_id = PROJECT) =>
  totals(store.read, project_id, ["email.delivered", "email.bounced", "email.complained"])

const settled = ({ store }: PostOffice, ...list: SettledMessage[]) =>
  store.tx((tx) => settle(tx, list))

test("messages that end together have each its own end, and count once each", async () => {
  await using office = await postOffice()
  const [one, two, other] = [
    await office.accept(),
    await office.accept(letter({}, [CC])),
    await office.accept(letter({ project_id: idFor("project_2") })),
  ]
  const both = [told(TO, { status: "bounced" }), told(CC, { status: "delivered" })]
  await settled(office, attempted(other), attempted(two, { list: both }), attempted(one))

  expect(await office.story(one)).toEqual([
    "email.queued to",
    "email.sent to",
    "email.delivered to",
  ])
  expect(await office.story(two)).toEqual([
    "email.queued to",
    "email.queued cc",
    "email.bounced to",
    "email.sent cc",
    "email.delivered cc",
  ])
  expect(await office.read(two)).toMatchObject({
    status: "bounced",
    provider: "smtp",
    recipients: [{ status: "bounced" }, { status: "delivered" }],
  })
  expect(await office.read(other)).toMatchObject({ status: "delivered" })
  const none = { "email.complained": 0 }
  const ours = { "email.delivered": 1, "email.bounced": 1, ...none }
  expect(Object.fromEntries(await counts(office))).toEqual(ours)
  const theirs = { "email.delivered": 1, "email.bounced": 0, ...none }
  expect(Object.fromEntries(await counts(office, idFor("project_2")))).toEqual(theirs)
})

test("two of the same project that end alike are two in its totals", async () => {
  await using office = await postOffice()
  const ids = [await office.accept(), await office.accept()]
  await settled(office, ...ids.map((id) => attempted(id)))
  expect((await counts(office)).get("email.delivered")).toBe(2)
})

test("among many, what a complaint said before stays, and is not counted away", async () => {
  await using office = await postOffice()
  const ids = [await office.accept(), await office.accept(), await office.accept()]
  const [, complained = ""] = ids
  const word = { type: "complained" as const, address: TO }
  await office.store.tx((tx) => feedback(tx, complained, word))
  await settled(office, ...ids.map((id) => attempted(id)))

  expect(await office.read(complained)).toMatchObject({ status: "complained" })
  expect(await office.attempts(complained)).toHaveLength(1)
  const expected = { "email.delivered": 2, "email.bounced": 0, "email.complained": 1 }
  expect(Object.fromEntries(await counts(office))).toEqual(expected)
})

test("a message that is gone takes nobody's end with it", async () => {
  await using office = await postOffice()
  const id = await office.accept()
  await settled(office, attempted(idFor("no-such-message")), attempted(id))
  expect(await office.read(id)).toMatchObject({ status: "delivered" })
  expect(await office.attempts(idFor("no-such-message"))).toEqual([])
})

test("what is kept of every message stays as it was first", async () => {
  await using office = await postOffice()
  const ids = [await office.accept(), await office.accept(), await office.accept()]
  const bytes = ids.map((_, at) => Buffer.alloc(3 - at, at + 1))
  const kept = async (id: string) => {
    const raws = office.store.read.select().from(messageRaws)
    return (await raws.where(eq(messageRaws.message_id, id))).map(({ raw }) => raw)
  }
  await settled(
    office,
    ...ids.map((id, at) => attempted(id, { ...(bytes[at] && { keep: bytes[at] }) })),
  )
  for (const [at, id] of ids.entries()) {
    const [raw, ...more] = await kept(id)
    expect(more).toEqual([])
    expect(Buffer.compare(raw ?? Buffer.of(), bytes[at] ?? Buffer.of())).toBe(0)
  }
  const [id = ""] = ids
  await settled(office, attempted(id, { keep: Buffer.from("others") }))
  expect((await kept(id))[0]?.length).toBe(3)
})

test("ends and the leases of the same jobs are written at the same time, and neither fails", async () => {
  await using office = await postOffice()
  const { store } = office
  for (let round = 0; round < 10; round++) {
    for (let at = 0; at < 20; at++) await office.accept()
    const hand = byHand(store, office.channels)
    const claimed = await hand.claim(20)
    const [, held] = await Promise.all([
      hand.claims.keep(claimed.toReversed()),
      store.tx((tx) => hand.claims.held(tx, claimed.toReversed())),
      hand.claims.keep(claimed),
    ])
    expect(held.size).toBe(20)
  }
})
