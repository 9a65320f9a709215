import { expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { cancel, failMailFrom } from "../../src/emails/emails"
import { Claims } from "../../src/jobs/job-claims"
import { type ClaimedJob, claim, completeAll, heartbeat, sweep } from "../../src/jobs/queue"
import { jobs } from "../../src/jobs/tables"
import { takeAll } from "../../src/messages/take"
import type { Closure, Store, Tx } from "../../src/store/store"
import { movableClock } from "../harness/clock"
import { quietLog } from "../harness/quiet"
import { refusal } from "../store/facts"
import { PROJECT } from "./letters"
import { type PostOffice, postOffice } from "./post-office"

quietLog()
const clock = movableClock()

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

/** Claims one message; between its job and itself there is time for somebody else. */
async function amidClaim(office: PostOffice, other: (store: Store) => Promise<unknown>) {
  const both = counted(office.store)
  const [locked, go] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const claiming = claim(both.store, 1, { owner: "me", lease_ms: 30_000 }, async (tx, claimed) => {
    locked.resolve()
    await go.promise // what no closure may do, but how else to meet
    await takeAll(tx, claimed)
  })
  await locked.promise
  const work = other(both.store).catch((error: Error) => error)
  await Promise.race([work, Bun.sleep(100)]) // by then it waits for the job
  go.resolve()
  await claiming
  return { ended: await work, repeats: both.repeats.count }
}

test("who cancels while the message is claimed waits for the claim, and neither runs again", async () => {
  await using office = await postOffice()
  const id = await office.accept()
  const { ended, repeats } = await amidClaim(office, (store) =>
    store.tx((tx) => cancel(tx, PROJECT, id)),
  )
  expect(await refusal(Promise.reject(ended))).toContain("Only a queued email can be cancelled")
  expect(repeats).toBe(0)
  expect(await office.read(id)).toMatchObject({ status: "sending" })
  expect(await office.store.read.select().from(jobs).where(eq(jobs.id, id))).toHaveLength(1)
})

test("mail of a deleted domain that is being claimed is left to its attempt, and neither runs again", async () => {
  await using office = await postOffice()
  const id = await office.accept()
  const rules = { sending_domains: new Set<string>() }
  const { ended, repeats } = await amidClaim(office, async (store) => {
    const handler = failMailFrom(store, rules)
    await handler.run({ project_id: PROJECT, domain: "example.test" }, {} as ClaimedJob)
  })
  expect(ended).toBeUndefined()
  expect(repeats).toBe(0)
  expect(await office.read(id)).toMatchObject({ status: "sending" })
  expect(await office.jobs()).toHaveLength(1)
})

const LEASE = { owner: "me", lease_ms: 30_000 }

test.each<[string, (store: Store, last_first: ClaimedJob[]) => Promise<unknown>]>([
  ["ends", (store, list) => store.tx((tx) => completeAll(tx, list))],
  ["gives back", (store, list) => new Claims(store, {}, LEASE).giveBack(list)],
  [
    "keeps",
    (store, list) =>
      heartbeat(
        store,
        LEASE,
        list.map(({ id }) => id),
      ),
  ],
  [
    "frees",
    (store) => {
      clock.advance({ seconds: 31 })
      return sweep(store, [])
    },
  ],
])("who %s many jobs waits for the first one before it holds another", async (_, many) => {
  await using office = await postOffice()
  for (let at = 0; at < 3; at++) await office.accept()
  const both = counted(office.store)
  const [first, second, last] = await claim(office.store, 3, LEASE)
  if (!first || !second || !last) throw new Error("three jobs were expected")
  await heartbeat(office.store, LEASE, [first.id]) // its row lies behind the others now
  const lock = (tx: Tx, { id }: ClaimedJob) =>
    tx.update(jobs).set({ last_error: "held" }).where(eq(jobs.id, id))

  const [locked, go] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const holding = both.store.tx(async (tx) => {
    await lock(tx, first)
    locked.resolve()
    await go.promise // what no closure may do, but how else to meet
    await lock(tx, last)
  })
  await locked.promise
  const work = many(both.store, [last, second, first])
  await Promise.race([work, Bun.sleep(100)])
  go.resolve()
  await Promise.all([holding, work])
  expect(both.repeats.count).toBe(0)
})
