import { expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { newId } from "../../src/core/ids"
import { idOf, isVerified, senderReadiness } from "../../src/domains/sending-domains"
import { domains } from "../../src/domains/tables"
import { testStore } from "../harness/store"
import { testDomain } from "./subject"

test("a yes is remembered until the domain changes, a no is not", async () => {
  await using it = await testStore()
  const { store } = it
  const project_id = newId()
  const is = (name = "acme.test") => isVerified(store.read, project_id, name, false)
  expect(await is()).toBe(false)
  const row = testDomain("acme.test", { project_id })
  await store.tx((tx) => tx.insert(domains).values(row))
  expect(await is()).toBe(false)
  await store.tx((tx) =>
    tx.update(domains).set({ status: "verified" }).where(eq(domains.id, row.id)),
  )
  expect(await is()).toBe(true)
  expect(await is()).toBe(true)
  expect(await isVerified(store.read, newId(), "acme.test", false)).toBe(false)
  await store.tx((tx) => tx.delete(domains).where(eq(domains.id, row.id)))
  expect(await is()).toBe(false)
})

test("names below count where that is wanted, those above and beside never", async () => {
  await using it = await testStore()
  const { store } = it
  const project_id = newId()
  const row = testDomain("mail.acme.test", { project_id, status: "verified" })
  await store.tx((tx) => tx.insert(domains).values(row))
  const may = (name: string, below: boolean) => isVerified(store.read, project_id, name, below)
  expect(await may("a.b.mail.acme.test", true)).toBe(true)
  expect(await may("a.b.mail.acme.test", false)).toBe(false)
  for (const name of ["acme.test", "xmail.acme.test", "other.acme.test", "test"]) {
    expect(await may(name, true)).toBe(false)
  }
  expect(await idOf(store.read, project_id, "mail.acme.test")).toBe(row.id)
  expect(await idOf(store.read, newId(), "mail.acme.test")).toBeNull()
})

test("a name below that has a row of its own stands as well as the one above it", async () => {
  await using it = await testStore()
  const { store } = it
  const project_id = newId()
  const rows = [
    testDomain("acme.test", { project_id, status: "verified" }),
    testDomain("news.acme.test", { project_id }),
  ]
  await store.tx((tx) => tx.insert(domains).values(rows))
  expect(await senderReadiness(store.read, project_id, "news.acme.test")).toBe("verified")
  expect(await isVerified(store.read, project_id, "news.acme.test", false)).toBe(false)
  expect(await isVerified(store.read, project_id, "news.acme.test", true)).toBe(true)
})
