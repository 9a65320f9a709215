import { expect, test } from "bun:test"
import { and, eq } from "drizzle-orm"
import { newId } from "../../src/core/ids"
import { events } from "../../src/events/tables"
import type { Channel } from "../../src/messages/channel"
import * as pipeline from "../../src/messages/pipeline"
import { feedback, stopAll } from "../../src/messages/settle"
import { isOpen } from "../../src/messages/status-changes"
import { messages, type Status } from "../../src/messages/tables"
import type { RecipientOutcome } from "../../src/providers/provider"
import { totals } from "../../src/store/counters"
import type { Store } from "../../src/store/store"
import fc from "../harness/properties"
import { quietLog } from "../harness/quiet"
import { engine, testStore } from "../harness/store"
import { concluded, giveUp } from "./by-hand"
import { leased, letter, outcome, read, told } from "./letters"

quietLog()

const RUNS = engine === "postgres" ? 40 : 150
const SLOW_MS = 60_000

const RANKS = ["queued", "sending", "sent", "delivered", "failed", "bounced", "complained"]
const SETTLED: Status[] = ["sent", "delivered", "failed", "bounced", "complained"]

interface News {
  who: number
  type: Status
}

type Step =
  | {
      does: "attempt"
      ends: (RecipientOutcome["status"] | "broken")[]
      meanwhile: News[]
      last: boolean
    }
  | { does: "news"; news: News }
  | { does: "give up" }
  | { does: "cancel" }

const news = fc.record<News>({
  who: fc.nat(3),
  type: fc.constantFrom("delivered", "bounced", "complained", "failed"),
})

const ends = fc.constantFrom<(RecipientOutcome["status"] | "broken")[]>(
  "retry",
  "retry",
  "sent",
  "delivered",
  "bounced",
  "failed",
  "broken",
)

const step = fc.oneof(
  { weight: 6, arbitrary: attemptStep() },
  { weight: 2, arbitrary: fc.record({ does: fc.constant("news" as const), news }) },
  { weight: 1, arbitrary: fc.constant({ does: "give up" as const }) },
  { weight: 1, arbitrary: fc.constant({ does: "cancel" as const }) },
)

function attemptStep() {
  return fc.record({
    does: fc.constant("attempt" as const),
    ends: fc.array(ends, { minLength: 4, maxLength: 4 }),
    meanwhile: fc.array(news, { maxLength: 2 }),
    last: fc.boolean(),
  })
}

test(
  "whatever happens in whatever order: states only move up, each move is told once, totals fit",
  async () => {
    await using it = await testStore()
    const { store } = it

    const property = fc.asyncProperty(
      fc.array(step, { maxLength: 8 }),
      fc.nat(2),
      async (steps: Step[], copies) => {
        const project_id = newId()
        const others = Array.from({ length: copies }, (_, n) => `copy${n}@example.test`)
        const list = [letter({ project_id }, others), letter({ project_id }, [], others)]
        await store.tx((tx) => pipeline.accept(tx, list))
        const [subject] = list
        const id = subject?.id ?? ""
        for (const [index, one] of steps.entries()) {
          const before = { message: await read(store.read, id), facts: await facts(store, id) }
          await take(store, id, one, index + 1)
          compare(before, { message: await read(store.read, id), facts: await facts(store, id) })
        }
        await totalsFit(store, project_id)
      },
    )
    await fc.assert(property, { numRuns: RUNS })
  },
  SLOW_MS,
)

/** What the loop does with one attempt, without the queue around it. */
async function take(store: Store, id: string, one: Step, attempt: number) {
  if (one.does === "news") return hear(store, id, one.news)
  if (one.does === "give up") {
    return giveUp(store, id, "given up")
  }
  if (one.does === "cancel") {
    const message = await read(store.read, id)
    if (message.status !== "queued") return
    await store.tx((tx) =>
      stopAll(tx, [message], { status: "cancelled", text: "no longer wanted" }),
    )
    return
  }
  const channel: Channel = {
    async deliver({ recipients }) {
      for (const rumour of one.meanwhile) await hear(store, id, rumour)
      if (one.ends[0] === "broken") throw new Error("broken")
      const open = recipients.filter(({ status }) => isOpen(status))
      const list = open.map(({ email }, n) => told(email, { status: endOf(one.ends[n]) }))
      return outcome(list, { next: () => (one.last ? undefined : 60) })
    },
  }
  const channels = { email: channel, push: channel, sms: channel, in_app: channel }
  const message = await leased(store, id, attempt)
  const result = await pipeline.deliver(store, channels, message, async () => message)
  await concluded(store, message, result)
}

const endOf = (end: RecipientOutcome["status"] | "broken" | undefined) =>
  end === undefined || end === "broken" ? "retry" : end

async function hear(store: Store, id: string, { who, type }: News) {
  const { recipients } = await read(store.read, id)
  const recipient_email = recipients[who]?.email ?? "stranger@example.test"
  await store.tx((tx) => feedback(tx, id, { type, address: recipient_email }))
}

interface Moment {
  message: Awaited<ReturnType<typeof read>>
  facts: string[]
}

async function facts(store: Store, id: string): Promise<string[]> {
  const rows = await store.read.select().from(events).where(eq(events.subject_id, id))
  return rows.map(({ type, data }) => `${type} ${data.recipient_email}`)
}

function compare(before: Moment, after: Moment) {
  const { message } = after
  const [primary] = message.recipients
  expect(message.status).toBe(primary?.status ?? "queued")
  expect(message.status_reason).toBe(primary?.status_reason ?? null)
  if (!message.recipients.some(({ status }) => isOpen(status))) {
    expect(message.next_attempt_at).toBeNull()
  }
  for (const [index, { email, status }] of message.recipients.entries()) {
    const was = before.message.recipients[index]?.status ?? "queued"
    const count = (type: string) => after.facts.filter((one) => one === `email.${type} ${email}`)
    const earlier = (type: string) => before.facts.filter((one) => one === `email.${type} ${email}`)
    expect(RANKS.indexOf(status)).toBeGreaterThanOrEqual(RANKS.indexOf(was))
    expect(count("queued")).toHaveLength(1)
    expect(count("soft_bounced").length).toBeLessThanOrEqual(1)
    // A move is told once, in the moment of the move.
    if (status !== was) expect(count(status).length - earlier(status).length).toBe(1)
    if (SETTLED.includes(status)) expect(count(status).length).toBeGreaterThan(0)
    // Who was settled and did not move hears no second word of the same kind.
    if (status === was) expect(count(status).length).toBe(earlier(status).length)
  }
}

/** Totals are kept of what is settled; the rows must say the same. */
async function totalsFit(store: Store, project_id: string) {
  const names = SETTLED.map((status) => `email.${status}`)
  const sums = await totals(store.read, project_id, ["email", ...names])
  const all = await store.read
    .select({ status: messages.status })
    .from(messages)
    .where(eq(messages.project_id, project_id))
  const rows: [string, number][] = SETTLED.map((status) => [
    `email.${status}`,
    all.filter((one) => one.status === status).length,
  ])
  expect(Object.fromEntries(sums)).toEqual({ email: all.length, ...Object.fromEntries(rows) })
}

test("a settle and a complaint at the same moment lose neither", async () => {
  await using it = await testStore()
  const { store } = it
  const copy = "copy@example.test"
  const sent = outcome([
    told("to@example.test", { status: "sent" }),
    told(copy, { status: "sent" }),
  ])
  const channel: Channel = { deliver: async () => sent }
  const channels = { email: channel, push: channel, sms: channel, in_app: channel }

  for (let round = 0; round < 15; round++) {
    const message = letter({}, [copy])
    await store.tx((tx) => pipeline.accept(tx, [message]))
    const claimed = await leased(store, message.id, 1)
    const result = await pipeline.deliver(store, channels, claimed, async () => claimed)
    await Promise.all([
      concluded(store, claimed, result),
      store.tx((tx) => feedback(tx, message.id, { type: "complained", address: copy })),
    ])
    const { recipients } = await read(store.read, message.id)
    expect(recipients.map(({ status }) => status)).toEqual(["sent", "complained"])
    const complaints = and(eq(events.subject_id, message.id), eq(events.type, "email.complained"))
    expect(await store.read.select().from(events).where(complaints)).toHaveLength(1)
  }
})
