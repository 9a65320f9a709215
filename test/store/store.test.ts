import { expect, spyOn, test } from "bun:test"
import { eq, gt, lte } from "drizzle-orm"
import { newEventId } from "../../src/core/ids"
import { events } from "../../src/events/tables"
import { bump, total } from "../../src/store/counters"
import { idFor } from "../harness/ids"
import { quietLog } from "../harness/quiet"
import { testStore } from "../harness/store"
import { happened, refusal, types } from "./facts"

quietLog()

test("undoes the closure that throws, and none of its neighbours", async () => {
  await using it = await testStore()
  const { store } = it

  const outcomes = await Promise.allSettled(
    ["one", "two", "three", "four", "five"].map((type) =>
      store.tx(async (tx) => {
        await happened(tx, type)
        if (type === "three") throw new Error("no three")
        return type
      }),
    ),
  )
  const ends = outcomes.map(({ status }) => status)
  expect(ends).toEqual(["fulfilled", "fulfilled", "rejected", "fulfilled", "fulfilled"])
  expect(outcomes[2]).toMatchObject({ reason: { message: "no three" } })
  expect((await types(store.read)).sort()).toEqual(["five", "four", "one", "two"])
})

test("undoes the closure whose statement is refused, and none of its neighbours", async () => {
  await using it = await testStore()
  const { store } = it
  const id = newEventId()
  const owned = {
    account_id: idFor("a"),
    project_id: idFor("p"),
    subject_id: null,
    data: {},
    detail: null,
  }
  const row = { id, ...owned, type: "first", created_at: "2026-01-01T00:00:00.000Z" }
  await store.tx(async (tx) => void (await tx.insert(events).values(row)))

  const twice = store.tx(async (tx) => {
    await happened(tx, "before")
    await tx.insert(events).values({ ...row, type: "second" })
  })
  const [refused] = await Promise.allSettled([twice, store.tx((tx) => happened(tx, "next"))])
  expect(refused.status).toBe("rejected")
  expect((await types(store.read)).sort()).toEqual(["first", "next"])
})

test("hides a closure from readers until it is committed, but not from itself", async () => {
  await using it = await testStore()
  const { store } = it

  await store.tx(async (tx) => {
    await happened(tx, "secret")
    expect(await types(tx)).toEqual(["secret"])
    expect(await types(store.read)).toEqual([])
  })
  expect(await types(store.read)).toEqual(["secret"])
})

test("answers with what the closure returned", async () => {
  await using it = await testStore()

  expect(await it.store.tx(async () => ({ some: "thing" }))).toEqual({ some: "thing" })
})

test("loses no update when many closures change one total", async () => {
  await using it = await testStore()
  const { store } = it

  const bumps = Array.from({ length: 100 }, () =>
    store.tx((tx) => bump(tx, idFor("project_1"), "things", 1)),
  )
  await Promise.all(bumps)
  expect(await total(store.read, idFor("project_1"), "things")).toBe(100)
})

test("refuses a transaction inside a transaction, and goes on", async () => {
  await using it = await testStore()
  const { store } = it

  const nested = store.tx(async () => {
    await store.tx((tx) => happened(tx, "inner"))
  })
  expect(await refusal(nested)).toContain("pass `tx` down")
  await store.tx((tx) => happened(tx, "after"))
  expect(await types(store.read)).toEqual(["after"])
})

test("allows a transaction from what a closure started and did not wait for", async () => {
  await using it = await testStore()
  const { store } = it
  const later = Promise.withResolvers<void>()
  let second: Promise<unknown> | undefined

  await store.tx(async (tx) => {
    await happened(tx, "first")
    second = later.promise.then(() => store.tx((own) => happened(own, "second")))
  })
  later.resolve()
  await second
  expect(await types(store.read)).toEqual(["first", "second"])
})

test("refuses a statement that comes after its transaction", async () => {
  await using it = await testStore()
  const { store } = it
  const later = Promise.withResolvers<void>()
  let late: Promise<unknown> | undefined

  await store.tx(async (tx) => {
    late = later.promise.then(() => happened(tx, "late"))
    late.catch(() => {})
  })
  later.resolve()
  await expect(late).rejects.toThrow()
  expect(await types(store.read)).toEqual([])
})

test("runs the effects of a closure once its commit is readable", async () => {
  await using it = await testStore()
  const { store } = it
  const seen: Promise<string[]>[] = []

  await store.tx(async (tx) => {
    await happened(tx, "rung")
    tx.afterCommit(() => seen.push(types(store.read)))
    await happened(tx, "twice")
    expect(seen).toEqual([])
  })
  await Bun.sleep(0)
  expect(await Promise.all(seen)).toEqual([["rung", "twice"]])
})

test("never runs the effects of a closure that failed", async () => {
  await using it = await testStore()
  const { store } = it
  const effects: string[] = []

  const failing = store.tx(async (tx) => {
    tx.afterCommit(() => effects.push("failed"))
    await happened(tx, "one")
    throw new Error("changed its mind")
  })
  const fine = store.tx(async (tx) => void tx.afterCommit(() => effects.push("fine")))
  await Promise.allSettled([failing, fine])
  expect(effects).toEqual(["fine"])
})

test("an effect that throws harms neither its commit nor the other effects", async () => {
  await using it = await testStore()
  const { store } = it
  const effects: string[] = []

  await store.tx(async (tx) => {
    await happened(tx, "kept")
    tx.afterCommit(() => {
      throw new Error("no listener")
    })
    tx.afterCommit(() => effects.push("second"))
  })
  await Bun.sleep(0)
  expect(effects).toEqual(["second"])
  expect(await types(store.read)).toEqual(["kept"])
})

test("compares times as times and returns them as ISO text in UTC", async () => {
  await using it = await testStore()
  const { store } = it
  const owned = {
    account_id: idFor("a"),
    project_id: idFor("p"),
    subject_id: null,
    data: {},
    detail: null,
  }
  const created_at = "2026-11-21T12:30:00.250+02:00"
  await store.tx(async (tx) => {
    await tx.insert(events).values({ id: newEventId(), ...owned, type: "t", created_at })
  })

  const utc = "2026-11-21T10:30:00.250Z"
  const found = (condition = eq(events.created_at, utc)) =>
    store.read.select().from(events).where(condition)
  expect(await found()).toMatchObject([{ created_at: utc }])
  expect(await found(lte(events.created_at, "2026-11-21T10:30:00.249Z"))).toEqual([])
  expect(await found(gt(events.created_at, "2026-11-21T10:30:00.249Z"))).toHaveLength(1)
})

test("refuses a text that is no time, and keeps nothing of it", async () => {
  await using it = await testStore()
  const { store } = it
  const owned = {
    account_id: idFor("a"),
    project_id: idFor("p"),
    subject_id: null,
    data: {},
    detail: null,
  }
  const row = { id: newEventId(), ...owned, type: "t", created_at: "yesterday" }

  const refused = store.tx(async (tx) => void (await tx.insert(events).values(row)))
  expect(await refusal(refused)).toContain('"yesterday" is not a time')
  expect(await types(store.read)).toEqual([])
})

test("a closure that may wait does so for a moment where the last one hung for long", async () => {
  await using it = await testStore()
  const patient = (act: () => void) => it.store.tx(async () => act(), undefined, 1)
  const real = performance.now.bind(performance)
  let later = 0
  using _ = spyOn(performance, "now").mockImplementation(() => real() + later)
  await patient(() => {
    later = 600_000 // far longer than a test may take
  })
  let is_done = false
  await patient(() => {
    is_done = true
  })
  expect(is_done).toBe(true)
})
