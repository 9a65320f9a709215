import { afterAll, expect, test } from "bun:test"
import { and, eq } from "drizzle-orm"
import { userCodes } from "../../src/auth/tables"
import { newId } from "../../src/core/ids"
import { openSecrets } from "../../src/core/secrets"
import { type CodeOwner, issueCode, takeCode, tryCode } from "../../src/sign-in/codes"
import { movableClock } from "../harness/clock"
import { testStore } from "../harness/store"

const { store, folder, [Symbol.asyncDispose]: close } = await testStore()
afterAll(close)
const clock = movableClock()

const owner: CodeOwner<typeof userCodes> = {
  secrets: openSecrets({ data_dir: folder, master_key: null }),
  table: userCodes,
  place: ({ environment_id, identifier, purpose }) => [environment_id, identifier, purpose],
}
const [project_id, environment_id] = [newId(), newId()]
const none = { user_id: null, message_id: null }

const issue = (identifier: string, code?: string) => {
  const place = { project_id, environment_id, identifier, purpose: "login" as const }
  const kept = { seconds: 600, ...(code && { code }) }
  return store.tx((tx) => issueCode(tx, owner, kept, { ...place, ...none }))
}

const attempt = (identifier: string, code: string) => {
  const mine = and(
    eq(userCodes.environment_id, environment_id),
    eq(userCodes.identifier, identifier),
  )
  return tryCode(store, owner, mine, code)
}

const other = (code: string) => (code === "000000" ? "000001" : "000000")

test("a code is six digits, passes in its place only, and is taken once", async () => {
  const code = await issue("ann@example.com")
  expect(code).toMatch(/^\d{6}$/)
  expect(await attempt("bob@example.com", code)).toEqual({ verdict: "expired" })
  expect(await attempt("ann@example.com", other(code))).toEqual({ verdict: "wrong" })
  const found = await attempt("ann@example.com", ` ${code} `)
  if (found.verdict !== "right") throw new Error(found.verdict)
  expect(found.row).toMatchObject({ identifier: "ann@example.com", purpose: "login" })
  const take = () => store.tx((tx) => takeCode(tx, userCodes, found.row))
  const takers = await Promise.all(Array.from({ length: 50 }, take))
  expect(takers.filter(Boolean)).toHaveLength(1)
  expect(await attempt("ann@example.com", code)).toEqual({ verdict: "expired" })
})

test("five guesses are looked at, however many come at once; then the right code is refused too", async () => {
  const code = await issue("carl@example.com")
  const guesses = await Promise.all(
    Array.from({ length: 40 }, () => attempt("carl@example.com", other(code))),
  )
  expect(guesses.filter(({ verdict }) => verdict === "wrong")).toHaveLength(5)
  expect(guesses.filter(({ verdict }) => verdict === "used_up")).toHaveLength(35)
  expect(await attempt("carl@example.com", code)).toEqual({ verdict: "used_up" })
})

test("a new code takes the place of the old one, even between the look and the taking", async () => {
  const first = await issue("dora@example.com", "111111")
  const found = await attempt("dora@example.com", first)
  const second = await issue("dora@example.com", "222222")
  if (found.verdict !== "right") throw new Error(found.verdict)
  expect(await store.tx((tx) => takeCode(tx, userCodes, found.row))).toBe(false)
  expect(await attempt("dora@example.com", first)).toEqual({ verdict: "wrong" })
  expect(await attempt("dora@example.com", second)).toMatchObject({ verdict: "right" })
  clock.advance({ seconds: 601 })
  expect(await attempt("dora@example.com", second)).toEqual({ verdict: "expired" })
})
