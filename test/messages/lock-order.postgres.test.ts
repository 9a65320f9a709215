import { expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { cancel } from "../../src/emails/emails"
import { claimsOf } from "../../src/jobs/claims"
import type { JobRow } from "../../src/jobs/jobs"
import { LEASED, PRIORITIES } from "../../src/jobs/work-item"
import { messageRows } from "../../src/messages/pipeline"
import { failMailFrom } from "../../src/messages/removed-domain-mail"
import type { Message } from "../../src/messages/status-changes"
import { messages } from "../../src/messages/tables"
import type { Closure, Store, Tx } from "../../src/store/store"
import { movableClock } from "../harness/clock"
import { untilLocked } from "../harness/lock-waits"
import { quietLog } from "../harness/quiet"
import { refusal } from "../store/facts"
import { PROJECT } from "./letters"
import { type PostOffice, postOffice } from "./post-office"

quietLog()
const clock = movableClock()

const LEASE = { owner: "me", lease_ms: 30_000 }

/** The same store, which counts closures that run again: those that were a deadlock's victim. */
function counted(store: Store) {
  const repeats = { count: 0 }
  const tx = <Result>(closure: Closure<Result>) => {
    let runs = 0
    return store.tx((open) => {
      if (++runs > 1) repeats.count += 1
      return closure(open)
    })
  }
  return { repeats, store: Object.assign(Object.create(store) as Store, { tx }) }
}

/** Claims one message; between the lock and the commit there is time for another transaction. */
async function amidClaim(office: PostOffice, other: (store: Store) => Promise<unknown>) {
  const both = counted(office.store)
  const [locked, go] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const claiming = both.store.tx(async (tx) => {
    await messageRows.claim(tx, { partition: PRIORITIES.normal, limit: 1 }, LEASE)
    locked.resolve()
    await go.promise // what no closure may do, but how else to meet
  })
  await locked.promise
  const work = other(both.store).catch((error: Error) => error)
  await untilLocked(office.store.read, 1, work) // it waits for the row
  go.resolve()
  await claiming
  return { ended: await work, repeats: both.repeats.count }
}

test("who cancels while the message is claimed waits for the claim, and neither runs again", async () => {
  await using office = await postOffice()
  const id = await office.accept()
  const { ended, repeats } = await amidClaim(office, (store) => cancel(store, PROJECT, id))
  expect(await refusal(Promise.reject(ended))).toContain("Only a queued email can be cancelled")
  expect(repeats).toBe(0)
  expect(await office.read(id)).toMatchObject({ status: "sending" })
  expect(await office.jobs()).toMatchObject([{ id, state: LEASED }])
})

test("mail of a deleted domain that is being claimed is left to its attempt, and neither runs again", async () => {
  await using office = await postOffice()
  const id = await office.accept()
  const rules = { sending_domains: new Set<string>() }
  const { ended, repeats } = await amidClaim(office, async (store) => {
    const handler = failMailFrom(store, rules)
    await handler.run({ project_id: PROJECT, domain: "example.test" }, {} as JobRow)
  })
  expect(ended).toBeUndefined()
  expect(repeats).toBe(0)
  expect(await office.read(id)).toMatchObject({ status: "sending" })
  expect(await office.jobs()).toHaveLength(1)
})

const claims = (store: Store) =>
  claimsOf<Message>(store, { rows: messageRows }, { ...LEASE, alone: false })

test.each<[string, (store: Store, last_first: Message[]) => Promise<unknown>]>([
  ["ends", (store, list) => store.tx((tx) => messageRows.held(tx, list, LEASE.owner))],
  ["releases", (store, list) => claims(store).release(list)],
  ["keeps", (store, list) => claims(store).keep(list)],
  [
    "frees",
    (store) => {
      clock.advance({ seconds: 31 })
      return messageRows.sweep(store, [])
    },
  ],
])("who %s many jobs waits for the first one before it holds another", async (_, many) => {
  await using office = await postOffice()
  for (let at = 0; at < 3; at++) await office.accept()
  const both = counted(office.store)
  const due = { partition: PRIORITIES.normal, limit: 3 }
  const [first, second, last] = await claims(office.store).claim(due)
  if (!first || !second || !last) throw new Error("three messages were expected")
  await claims(office.store).keep([first]) // its row lies behind the others now
  const lock = (tx: Tx, { id }: Message) =>
    tx.update(messages).set({ status_reason: "held" }).where(eq(messages.id, id))

  const [locked, go] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const holding = both.store.tx(async (tx) => {
    await lock(tx, first)
    locked.resolve()
    await go.promise // what no closure may do, but how else to meet
    await lock(tx, last)
  })
  await locked.promise
  const work = many(both.store, [last, second, first])
  await untilLocked(office.store.read, 1, work)
  go.resolve()
  await Promise.all([holding, work])
  expect(both.repeats.count).toBe(0)
})
