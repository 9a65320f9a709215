import { expect, test } from "bun:test"
import { asc } from "drizzle-orm"
import { millisFrom } from "../../src/core/time"
import { events } from "../../src/events/tables"
import type { ReputationCounts } from "../../src/identity/account-reputation"
import { feedback, type LateFact } from "../../src/messages/settle"
import { OWN_SOURCE } from "../../src/messages/status-changes"
import { count, hourOf, MOST_NAMES_AN_HOUR, NONE, sumOf } from "../../src/reputation/hour-counts"
import { reputationHours } from "../../src/reputation/tables"
import type { Reader } from "../../src/store/store"
import { idFor } from "../harness/ids"
import fc from "../harness/properties"
import { letter, outcome, PROJECT, told } from "./letters"
import { postOffice } from "./post-office"

const ACCOUNT = idFor("account_1")

/** What the counters of the account hold, by dimension and name. */
async function counted(db: Reader): Promise<Record<string, number[]>> {
  const sums = new Map<string, ReputationCounts>()
  for (const row of await db.select().from(reputationHours)) {
    expect([row.account_id, row.project_id]).toEqual([ACCOUNT, PROJECT])
    const key = `${row.dimension} ${row.name}`.trim()
    sums.set(key, sumOf([sums.get(key) ?? NONE, row]))
  }
  const inOrder = [...sums].sort(([a], [b]) => (a < b ? -1 : 1))
  return Object.fromEntries(
    inOrder.map(([key, { sent, delivered, bounced, complained }]) => [
      key,
      [sent, delivered, bounced, complained],
    ]),
  )
}

const RANKS = ["queued", "sent", "delivered", "failed", "bounced", "complained"]
const INFRASTRUCTURE = ["PolicyRejected", "InfrastructureRejected"]

/** The same, told by the events alone. */
async function recounted(db: Reader): Promise<number[]> {
  const standing = new Map<string, string>()
  const [sum, rows] = [[0, 0, 0, 0], db.select().from(events).orderBy(asc(events.position))]
  for (const { type, subject_id, data } of await rows) {
    const [key, status] = [`${subject_id} ${data.recipient_email}`, type.replace("email.", "")]
    const before = standing.get(key) ?? "queued"
    if (RANKS.indexOf(status) <= RANKS.indexOf(before)) continue
    standing.set(key, status)
    const is_ours = status === "bounced" && INFRASTRUCTURE.includes(String(data.bounce_subtype))
    if (is_ours || status === "failed") continue
    const add = (at: number) => {
      sum[at] = (sum[at] ?? 0) + 1
    }
    if (before === "queued" || before === "failed") add(0)
    if (status === "delivered") add(1)
    if (status === "bounced") add(2)
    if (status === "complained") add(3)
  }
  return sum
}

const SUBTYPES = ["NoEmail", "MailboxFull", "PolicyRejected", "InfrastructureRejected"]
const first = fc.record({
  status: fc.constantFrom("sent", "delivered", "bounced", "failed"),
  bounce_subtype: fc.constantFrom(...SUBTYPES),
})
const later = fc.option(
  fc.record({
    type: fc.constantFrom("delivered", "bounced", "complained", "soft_bounced"),
    bounce_subtype: fc.constantFrom(...SUBTYPES),
  }),
)
const course = fc.record({ to: first, cc: first, later, again: later })

test("counters equal what the events tell, whatever became of the recipients", async () => {
  const property = fc.asyncProperty(
    fc.array(course, { minLength: 1, maxLength: 12 }),
    async (all) => {
      const outcomes = all.map(({ to, cc }) =>
        outcome([
          told("to@example.test", { ...to, status: to.status as "sent" }),
          told("cc@example.test", { ...cc, status: cc.status as "sent" }),
        ]),
      )
      await using office = await postOffice(...outcomes)
      const { store } = office
      const ids: string[] = []
      for (const _ of all) {
        ids.push(await office.accept(letter({ tags: ["news", "news"] }, ["cc@example.test"])))
      }
      await office.runDue()
      for (const [at, { later, again }] of all.entries()) {
        for (const fact of [later, again]) {
          if (!fact) continue
          const recipient_email = fact.type === "complained" ? "to@example.test" : "cc@example.test"
          const late = { ...fact, address: recipient_email, detail: null } as LateFact
          await store.tx((tx) => feedback(tx, ids[at] ?? "", late))
        }
      }
      const sums = await counted(store.read)
      const [project = [0, 0, 0, 0]] = [sums.project]
      expect(project).toEqual(await recounted(store.read))
      for (const sum of Object.values(sums)) expect(sum).toEqual(project)
    },
  )
  await fc.assert(property, { seed: 20_261_122, numRuns: 12 })
})

test("by domain, tag and template: each message once, in the hour in which it was sent", async () => {
  const delivered = outcome([told("to@example.test", { status: "delivered" })])
  await using office = await postOffice(delivered, delivered, delivered)
  const template_id = idFor("template_1")
  await office.accept(letter({ tags: ["a", "b", "a"], sender_domain: "x.test" }))
  await office.accept(letter({ tags: ["b"], template_id }))
  const late = await office.accept(letter())
  await office.runDue()
  expect(await counted(office.store.read)).toEqual({
    "domain example.test": [2, 2, 0, 0],
    "domain x.test": [1, 1, 0, 0],
    project: [3, 3, 0, 0],
    "tag a": [1, 1, 0, 0],
    "tag b": [2, 2, 0, 0],
    [`template ${template_id}`]: [1, 1, 0, 0],
  })
  const { sent_at } = await office.read(late)
  const complaint = { type: "complained", address: "to@example.test" } as const
  await office.store.tx((tx) => feedback(tx, late, complaint))
  const rows = await office.store.read.select().from(reputationHours)
  expect(rows.find(({ complained }) => complained > 0)?.hour).toBe(
    hourOf(millisFrom(sent_at ?? "")),
  )
})

test("a tag of its own for every email is counted for some hundred of them, and the rest in the total", async () => {
  await using office = await postOffice()
  const { store } = office
  const email = (number: number, bounced = 0) => ({
    ...{ account_id: ACCOUNT, project_id: PROJECT, sender_domain: "x.test", template_id: null },
    ...{ tags: ["news", `order:${number}`], hour: 400_000 },
    counts: { sent: 1, delivered: 1 - bounced, bounced, complained: 0 },
  })
  for (let from = 0; from < 500; from += 20) {
    const some = Array.from({ length: 20 }, (_, at) => email(from + at))
    await store.tx((tx) => count(tx, some))
  }
  await store.tx((tx) => count(tx, [email(999, 1)]))
  const sums = await counted(store.read)
  expect([sums.project, sums["tag news"], sums["domain x.test"]]).toEqual(
    Array(3).fill([501, 500, 1, 0]),
  )
  expect(sums["tag order:999"]).toEqual([1, 0, 1, 0])
  const tags = Object.keys(sums).filter((name) => name.startsWith("tag order:"))
  expect(tags.length).toBeGreaterThan(MOST_NAMES_AN_HOUR - 21)
  expect(tags.length).toBeLessThan(MOST_NAMES_AN_HOUR + 21)
})

test("mail of the sandbox and of the instance itself counts nothing", async () => {
  const bounced = outcome([told("to@example.test", { status: "bounced" })])
  await using office = await postOffice(bounced, bounced)
  await office.accept(letter({ sandbox: true, tags: ["a"] }))
  await office.accept(letter({ source: OWN_SOURCE }))
  await office.runDue()
  expect(await counted(office.store.read)).toEqual({})
})
