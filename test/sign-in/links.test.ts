import { afterAll, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { newId } from "../../src/core/ids"
import { passwordResets } from "../../src/identity/tables"
import { closeLinks, issueLink, openLink, takeLink } from "../../src/sign-in/links"
import { movableClock } from "../harness/clock"
import { testStore } from "../harness/store"

const { store, [Symbol.asyncDispose]: close } = await testStore()
afterAll(close)
const clock = movableClock()

const issue = (user_id = newId()) =>
  store.tx((tx) => issueLink(tx, passwordResets, { kind: "reset", seconds: 900 }, { user_id }))

const take = (token: string) => store.tx((tx) => takeLink(tx, passwordResets, token))

test("a link is looked at often and taken once, also by fifty at once", async () => {
  const user_id = newId()
  const token = await issue(user_id)
  for (const _ of [1, 2])
    expect(await openLink(store.read, passwordResets, token)).toMatchObject({ user_id })
  const takers = await Promise.all(Array.from({ length: 50 }, () => take(token)))
  expect(takers.filter((row) => row?.user_id === user_id)).toHaveLength(1)
  expect(await openLink(store.read, passwordResets, token)).toBeUndefined()
})

test("a link ends by its time, when it is closed, and for others than it was made for", async () => {
  const user_id = newId()
  const [old, closed, foreign] = [await issue(user_id), await issue(user_id), await issue()]
  const among = eq(passwordResets.user_id, user_id)
  expect(await openLink(store.read, passwordResets, foreign, among)).toBeUndefined()
  await store.tx((tx) => closeLinks(tx, passwordResets, among))
  expect(await take(closed)).toBeUndefined()
  expect(await take(foreign)).toBeDefined()
  const late = await issue()
  clock.advance({ seconds: 901 })
  for (const token of [old, late, "belfry_reset_unknown", ""])
    expect(await take(token)).toBeUndefined()
})
