import { expect, test } from "bun:test"
import { SendBatcher } from "../../src/messages/accept"
import { messages } from "../../src/messages/tables"
import type { Store } from "../../src/store/store"
import { testStore } from "../harness/store"
import { letter } from "./letters"

const never = new AbortController().signal
const answer = () => ({})

const entry = () => ({ message: letter(), allowance: null })

const stored = async (store: Store) =>
  (await store.read.select({ id: messages.id }).from(messages)).map(({ id }) => id)

test("sends that arrive together are all stored", async () => {
  await using it = await testStore()
  const { store } = it
  const intake = new SendBatcher(store)
  const list = Array.from({ length: 300 }, () => entry())

  await Promise.all(
    list.map((one) => intake.submit(one, { claim: undefined, signal: never }, answer)),
  )
  expect((await stored(store)).sort()).toEqual(list.map(({ message }) => message.id).sort())
})

test("what was given up before its turn is not stored, and harms no neighbour", async () => {
  await using it = await testStore()
  const { store } = it
  const intake = new SendBatcher(store)
  const late = new AbortController()
  const [given_up, wanted] = [entry(), entry()]

  const refused = intake.submit(given_up, { claim: undefined, signal: late.signal }, answer)
  const accepted = intake.submit(wanted, { claim: undefined, signal: never }, answer)
  late.abort()
  await expect(refused).rejects.toThrow()
  await accepted
  expect(await stored(store)).toEqual([wanted.message.id])
})

test("one that cannot be stored does not spoil the others of its group", async () => {
  await using it = await testStore()
  const { store } = it
  const intake = new SendBatcher(store)
  const good = [entry(), entry()]
  const twice = good[0] ?? entry()

  const outcomes = await Promise.allSettled(
    [...good, twice].map((one) => intake.submit(one, { claim: undefined, signal: never }, answer)),
  )
  expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "fulfilled", "rejected"])
  expect(await stored(store)).toHaveLength(2)
})

test("storage trouble refuses the whole group at once instead of one by one", async () => {
  let tries = 0
  const full = Object.assign(new Error("disk full"), { code: "SQLITE_FULL" })
  const store = {
    tx() {
      tries += 1
      return Promise.reject(full)
    },
  } as unknown as Store
  const intake = new SendBatcher(store)

  const sends = Array.from({ length: 50 }, () =>
    intake.submit(entry(), { claim: undefined, signal: never }, answer),
  )
  const outcomes = await Promise.allSettled(sends)
  expect(outcomes.every(({ status }) => status === "rejected")).toBe(true)
  expect(tries).toBe(1)
})

test("too many waiting sends are refused with 503 instead of kept in memory", async () => {
  const store = { tx: () => new Promise(() => {}) } as unknown as Store
  const intake = new SendBatcher(store)
  const one = entry()
  const submit = () => intake.submit(one, { claim: undefined, signal: never }, answer)

  for (let n = 0; n < 5000; n++) submit().catch(() => {})
  expect(submit).toThrow("wait for the storage")
})
