import { expect, test } from "bun:test"
import { hash, verify } from "../../src/sign-in/passwords"
import { hashingFully } from "../harness/quick-passwords"
import { PASSWORD } from "../identity/entrance"

test("a hash is argon2id with 19 MiB and two passes, and proves its password only", async () => {
  using _ = hashingFully()
  const hashed = await hash(PASSWORD)
  expect(hashed).toStartWith("$argon2id$v=19$m=19456,t=2,p=1$")
  expect(await verify(PASSWORD, hashed)).toBe(true)
  expect(await verify(`${PASSWORD} `, hashed)).toBe(false)
  expect(await verify(PASSWORD, undefined)).toBe(false)
  expect(await hash(PASSWORD)).not.toBe(hashed)
})

test("a hundred may wait for their turn; who comes later hears 503, and none is forgotten", async () => {
  const hashed = await hash(PASSWORD)
  const answers = await Promise.allSettled(
    Array.from({ length: 105 }, () => verify(PASSWORD, hashed)),
  )
  const refused = answers.filter((one) => one.status === "rejected").map(({ reason }) => reason)
  expect(refused.map(({ status, code }) => `${status} ${code}`)).toEqual([
    "503 service_unavailable",
    "503 service_unavailable",
    "503 service_unavailable",
  ])
  expect(refused[0].headers).toEqual({ "retry-after": "1" })
  expect(await verify(PASSWORD, hashed)).toBe(true)
})
