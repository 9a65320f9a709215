import { expect, test } from "bun:test"
import { sql } from "drizzle-orm"
import { settings } from "../../src/core/config"
import { bumpAll, totals } from "../../src/store/counters"
import { openStore } from "../../src/store/open"
import type { Tx } from "../../src/store/store"
import { counters } from "../../src/store/tables"
import { idFor } from "../harness/ids"
import { quietLog } from "../harness/quiet"
import { testStore } from "../harness/store"
import { happened, refusal, types } from "./facts"

quietLog()

interface Raw {
  execute(query: unknown): Promise<unknown>
}

const raw = (tx: Tx) => tx as unknown as Raw

/** Resolves for everybody once so many have come; later ones pass. */
function meeting(guests: number) {
  const all = Promise.withResolvers<void>()
  let arrivals = 0
  return {
    async arrive() {
      if (++arrivals === guests) all.resolve()
      await all.promise // what no closure may do, but how else to meet
    },
    arrivals: () => arrivals,
  }
}

const row = (name: string) => ({ project_id: idFor("p"), name, shard: 0, value: 0 })

test("runs both of two closures that lock each other out", async () => {
  await using it = await testStore()
  const { store } = it
  await store.tx(async (tx) => void (await tx.insert(counters).values([row("a"), row("b")])))
  const here = meeting(2)

  const lock = (first: string, second: string) =>
    store.tx(async (tx) => {
      const add = (name: string) =>
        tx
          .update(counters)
          .set({ value: sql`${counters.value} + 1` })
          .where(sql`${counters.name} = ${name}`)
      await add(first)
      await here.arrive()
      await add(second)
    })
  await Promise.all([lock("a", "b"), lock("b", "a")])

  expect(here.arrivals()).toBeGreaterThan(2) // one of them had to come again
  const sums = await totals(store.read, idFor("p"), ["a", "b"])
  expect([...sums.values()]).toEqual([2, 2])
})

test("runs again a closure whose reads another one made wrong", async () => {
  await using it = await testStore()
  const { store } = it
  await store.tx(async (tx) => void (await tx.insert(counters).values(row("a"))))
  const here = meeting(2)
  const effects: string[] = []

  const add = (name: string) =>
    store.tx(async (tx) => {
      await raw(tx).execute(sql`SET TRANSACTION ISOLATION LEVEL SERIALIZABLE`)
      const [read] = await tx.select().from(counters)
      await here.arrive()
      await tx.update(counters).set({ value: (read?.value ?? 0) + 1 })
      tx.afterCommit(() => effects.push(name))
    })
  await Promise.all([add("left"), add("right")])

  expect(here.arrivals()).toBeGreaterThan(2)
  expect(effects.sort()).toEqual(["left", "right"]) // once each, although one ran twice
  expect((await totals(store.read, idFor("p"), ["a"])).get("a")).toBe(2)
})

test("a conflict that never ends is told after some tries", async () => {
  const troubles: unknown[] = []
  await using it = await testStore()
  const url = it.database_url
  const store = await openStore(
    { ...settings(), database_url: url },
    {
      onFault: (one) => troubles.push(one),
    },
  )
  let runs = 0

  const hopeless = store.tx(async (tx) => {
    runs += 1
    await happened(tx, "never")
    await raw(tx).execute(sql`DO $$ BEGIN RAISE EXCEPTION 'again' USING ERRCODE = '40001'; END $$`)
  })
  await refusal(hopeless)
  expect(runs).toBe(8)
  expect(troubles).toHaveLength(1)
  expect(await types(store.read)).toEqual([])
  await store.close()
})

test("another mistake is told at once, and never tried again", async () => {
  await using it = await testStore()
  let runs = 0

  const wrong = it.store.tx(async (tx) => {
    runs += 1
    await raw(tx).execute(sql`SELECT no_such_column FROM events`)
  })
  await refusal(wrong)
  expect(runs).toBe(1)
})

test("two nodes that count the same totals never lock each other out", async () => {
  await using it = await testStore()
  const nodes = [it.store, await openStore({ ...settings(), database_url: it.database_url })]
  const names = ["one", "two", "three"]

  const work = Array.from({ length: 40 }, (_, n) => {
    const shuffled = n % 2 === 0 ? names : [...names].reverse()
    return nodes[n % 2]?.tx((tx) =>
      bumpAll(
        tx,
        shuffled.map((name) => ({ owner: idFor("p"), name, by: 1 })),
      ),
    )
  })
  await Promise.all(work)
  const sums = await totals(it.store.read, idFor("p"), names)
  expect([...sums.values()]).toEqual([40, 40, 40])
  await nodes[1]?.close()
})

test("tells every node, and hears what it told", async () => {
  await using it = await testStore()
  const other = await openStore({ ...settings(), database_url: it.database_url })
  const heard = Promise.withResolvers<string>()
  other.listen("bell", (payload) => heard.resolve(payload))

  // LISTEN takes a moment of its own: ring until somebody answers.
  const ringing = setInterval(() => it.store.notify("bell", "dong"), 20)
  expect(await heard.promise).toBe("dong")
  clearInterval(ringing)
  await other.close()
})
