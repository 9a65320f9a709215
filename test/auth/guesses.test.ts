import { afterAll, describe, expect, test } from "bun:test"
import type { AuthEnvironment } from "../../src/auth/environments"
import * as guesses from "../../src/auth/guesses"
import { userThrottles } from "../../src/auth/tables"
import type { ApiError } from "../../src/core/errors"
import { newId } from "../../src/core/ids"
import { openSecrets } from "../../src/core/secrets"
import { Throttle } from "../../src/sign-in/throttle"
import { movableClock } from "../harness/clock"
import { testStore } from "../harness/store"

const clock = movableClock()
const { store, folder, [Symbol.asyncDispose]: close } = await testStore()
afterAll(close)
const secrets = openSecrets({ data_dir: folder, master_key: null })
const parts = { throttle: new Throttle(store, secrets, userThrottles) }

const anEnvironment = () => ({ id: newId() }) as AuthEnvironment
const anywhere = () => `2001:db8:${(Math.random() * 0xffff).toString(16).slice(0, 4)}::1`
const identifier = "ann@example.com"

/** How many of so many tries are let in, and the code of the others. */
async function admitted(count: number, attempt: (at: number) => Promise<unknown>) {
  const codes = new Set<string>()
  let right = 0
  for (let at = 0; at < count; at++) {
    await attempt(at).then(
      () => {
        right += 1
      },
      (error: ApiError) => codes.add(error.code),
    )
  }
  return [right, ...codes]
}

describe("an identifier", () => {
  const login = (environment: AuthEnvironment) =>
    admitted(12, () => guesses.countLogin(parts, environment, { identifier, ip: anywhere() }))

  test("takes ten passwords from all addresses until the window of its first try ends", async () => {
    clock.freeze()
    const environment = anEnvironment()
    expect(await login(environment)).toEqual([10, "login_rate_limit_exceeded"])
    clock.advance({ seconds: 899 })
    expect(await login(environment)).toEqual([0, "login_rate_limit_exceeded"])
    expect(await login(anEnvironment())).toEqual([10, "login_rate_limit_exceeded"])
    clock.advance({ seconds: 1 })
    expect(await login(environment)).toEqual([10, "login_rate_limit_exceeded"])
  })

  test("takes passwords again after a right one, and when somebody lifts the lockout", async () => {
    const environment = anEnvironment()
    const ip = anywhere()
    await login(environment)
    await store.tx((tx) => guesses.forgiveLogin(tx, parts, environment, { identifier, ip }))
    expect(await login(environment)).toEqual([10, "login_rate_limit_exceeded"])
    await store.tx((tx) => guesses.liftLockout(tx, parts, environment, { email: identifier }))
    expect(await login(environment)).toEqual([10, "login_rate_limit_exceeded"])
  })

  test("is registered ten times in fifteen minutes, and forgets its password three times an hour", async () => {
    const environment = anEnvironment()
    const attempt = () => ({ identifier, ip: anywhere() })
    expect(
      await admitted(12, () => guesses.countRegistration(parts, environment, attempt())),
    ).toEqual([10, "login_rate_limit_exceeded"])
    expect(await admitted(12, () => guesses.countForgot(parts, environment, attempt()))).toEqual([
      3,
      "login_rate_limit_exceeded",
    ])
  })

  test("is sent one code in 30 seconds, five in fifteen minutes, ten a day", async () => {
    clock.freeze()
    const environment = anEnvironment()
    const send = () => guesses.countSend(parts, environment, { identifier, ip: anywhere() })
    expect(await admitted(3, send)).toEqual([1, "otp_send_rate_limit_exceeded"])
    const later = (seconds: number) => {
      clock.advance({ seconds })
      return send()
    }
    expect(await admitted(6, () => later(30))).toEqual([4, "otp_send_rate_limit_exceeded"])
    clock.advance({ seconds: 900 })
    expect(await admitted(6, () => later(30))).toEqual([5, "otp_send_rate_limit_exceeded"])
    expect(await admitted(20, () => later(900))).toEqual([0, "otp_send_rate_limit_exceeded"])
    clock.advance({ seconds: 86_400 })
    expect(await admitted(1, send)).toEqual([1])
  })

  test("has fifteen codes looked at an hour", async () => {
    const environment = anEnvironment()
    const check = () => guesses.countCheck(parts, environment, identifier)
    expect(await admitted(20, check)).toEqual([15, "otp_verify_rate_limit_exceeded"])
    clock.advance({ seconds: 3601 })
    expect(await admitted(1, check)).toEqual([1])
  })
})

describe("an address", () => {
  test("fails 30 times, whoever it names, and a right password takes back its own try only", async () => {
    const environment = anEnvironment()
    const attempt = (at: number) => ({ identifier: `person-${at}@example.com`, ip: "192.0.2.1" })
    const login = (at: number) => guesses.countLogin(parts, environment, attempt(at))
    expect(await admitted(31, login)).toEqual([30, "login_rate_limit_exceeded"])
    await store.tx((tx) => guesses.forgiveLogin(tx, parts, environment, attempt(1)))
    expect(await admitted(3, login)).toEqual([1, "login_rate_limit_exceeded"])
  })

  test("registers and forgets 30 times, and asks for 20 codes an hour", async () => {
    const environment = anEnvironment()
    const attempt = (at: number) => ({ identifier: `person-${at}@example.com`, ip: "192.0.2.1" })
    const count = (of: typeof guesses.countSend) =>
      admitted(32, (at) => of(parts, environment, attempt(at)))
    expect(await count(guesses.countRegistration)).toEqual([30, "login_rate_limit_exceeded"])
    expect(await count(guesses.countForgot)).toEqual([30, "login_rate_limit_exceeded"])
    expect(await count(guesses.countSend)).toEqual([20, "otp_send_rate_limit_exceeded"])
  })

  test("is a network of IPv6", async () => {
    const environment = anEnvironment()
    const attempt = (at: number) =>
      guesses.countRegistration(parts, environment, {
        identifier: `person-${at}@example.com`,
        ip: `2001:db8:1:2::${at.toString(16)}`,
      })
    expect(await admitted(32, attempt)).toEqual([30, "login_rate_limit_exceeded"])
  })
})

test("a signed-in user proves it ten times, and anew after a right password", async () => {
  const environment = anEnvironment()
  const user = { id: newId() }
  const prove = () => guesses.countProof(parts, environment, user)
  expect(await admitted(12, prove)).toEqual([10, "login_rate_limit_exceeded"])
  await store.tx((tx) => guesses.forgiveProof(tx, parts, environment, user))
  expect(await admitted(1, prove)).toEqual([1])
})
