import { describe, expect, test } from "bun:test"
import * as apiKeys from "../../src/identity/api-keys"
import { AddressBans } from "../../src/smtp/submission"
import { movableClock } from "../harness/clock"
import { sharedService } from "../harness/shared-service"
import { replyOf, session, testSubmission } from "../harness/submission"

const service = await sharedService()
const { store } = service.parts
const clock = movableClock()

const WRONG = "svc_live_wrong"

test("any user name with a key that may send is let in", async () => {
  const { key, project_id } = await service.project({ scopes: ["email:send"] })
  const { login } = testSubmission(service)
  for (const username of ["svc", "x", "somebody@example.test", "ü"]) {
    const { identity } = await login(key, session(), username)
    expect(identity?.caller).toMatchObject({ project_id, ip: "192.0.2.7" })
  }
})

describe("refused", () => {
  const cases: [string, string, (key: string) => Promise<string> | string][] = [
    ["a wrong key", "535 5.7.8 unauthorized", () => WRONG],
    ["no key", "535 5.7.8 unauthorized", () => ""],
    ["another secret", "535 5.7.8 unauthorized", (key) => `${key.slice(0, -1)}!`],
    [
      "a test key after the cut-off",
      "535 5.7.8 unauthorized",
      (key) => key.replace("live", "test"),
    ],
  ]
  test.each(cases)("%s: %s", async (_, reply, passwordOf) => {
    const { key } = await service.project()
    const { login } = testSubmission(service)
    expect(await replyOf(login(await passwordOf(key)))).toBe(reply)
  })

  test("an empty user name", async () => {
    const { key } = await service.project()
    expect(await replyOf(testSubmission(service).login(key, session(), ""))).toBe(
      "535 5.7.8 unauthorized",
    )
  })

  test("a revoked and an expired key", async () => {
    const { key, key_id, project_id, addKey } = await service.project()
    const { login } = testSubmission(service)
    await store.tx((tx) => apiKeys.revoke(tx, project_id, key_id))
    expect(await replyOf(login(key))).toBe("535 5.7.8 unauthorized")
    const soon = new Date(Date.now() + 60_000).toISOString()
    const ending = await addKey({ expires_at: soon })
    await login(ending.key)
    clock.advance({ seconds: 61 })
    expect(await replyOf(login(ending.key))).toBe("535 5.7.8 unauthorized")
  })

  test("an address outside the allowlist, but not one within, nor its mapped form", async () => {
    const { key } = await service.project({ ip_addresses: ["192.0.2.0/28"] })
    const { login } = testSubmission(service)
    await login(key, session("192.0.2.7"))
    await login(key, session("::ffff:192.0.2.7"))
    expect(await replyOf(login(key, session("192.0.2.99")))).toBe("535 5.7.8 ip_not_allowed")
  })

  const blocked: [string, object, string][] = [
    ["a key without the scope", { scopes: ["email:read"] }, "535 5.7.1 forbidden"],
    ["a locked account", { status: "locked" }, "535 5.7.1 account_locked"],
    ["a suspended account", { status: "suspended" }, "535 5.7.1 account_suspended"],
    ["the plan free", { plan: "free" }, "535 5.7.1 plan_limit_exceeded"],
  ]
  test.each(blocked)("%s", async (_, options, reply) => {
    const { key } = await service.project(options)
    expect(await replyOf(testSubmission(service).login(key))).toBe(reply)
  })
})

describe("guessing", () => {
  test("three failures end a connection; another one of the address may go on", async () => {
    const { key } = await service.project()
    const { login } = testSubmission(service)
    const one = session("192.0.2.50")
    expect(await replyOf(login(WRONG, one))).toBe("535 5.7.8 unauthorized")
    expect(await replyOf(login(WRONG, one))).toBe("535 5.7.8 unauthorized")
    expect(await replyOf(login(WRONG, one))).toBe("421 4.7.0 login_rate_limit_exceeded")
    await login(key, session("192.0.2.50"))
  })

  test("ten failures ban an address for fifteen minutes, even with the right key", async () => {
    const { key } = await service.project()
    const { login } = testSubmission(service)
    const from = "198.51.100.1"
    for (let failure = 1; failure <= 9; failure++) await replyOf(login(WRONG, session(from)))
    await login(key, session(from))
    expect(await replyOf(login(WRONG, session(from)))).toBe("535 5.7.8 unauthorized")
    expect(await replyOf(login(key, session(from)))).toBe("421 4.7.0 login_rate_limit_exceeded")
    await login(key, session("198.51.100.2"))
    clock.advance({ seconds: 14 * 60 })
    expect(await replyOf(login(key, session(from)))).toStartWith("421")
    clock.advance({ seconds: 61 })
    await login(key, session(from))
  })

  test("failures that lie further apart ban nobody", async () => {
    const bans = new AddressBans()
    for (let failure = 1; failure <= 30; failure++) {
      bans.count("198.51.100.3")
      clock.advance({ seconds: 110 })
      expect(bans.isBanned("198.51.100.3")).toBe(false)
    }
  })

  test("a key that is right but may not send bans nobody", async () => {
    const { key } = await service.project({ scopes: ["email:read"] })
    const { key: good } = await service.project()
    const { login } = testSubmission(service)
    for (let failure = 1; failure <= 12; failure++)
      await replyOf(login(key, session("203.0.113.1")))
    await login(good, session("203.0.113.1"))
  })

  test("an IPv6 network counts as one subscriber, and IPv4 also where it is mapped", () => {
    const bans = new AddressBans()
    for (let host = 1; host <= 10; host++) bans.count(`2001:db8::${host}`)
    expect(bans.isBanned("2001:db8::ffff")).toBe(true)
    expect(bans.isBanned("2001:db8:1::1")).toBe(false)
    for (let count = 1; count <= 10; count++) bans.count("::ffff:192.0.2.80")
    expect(bans.isBanned("192.0.2.80")).toBe(true)
  })

  test("many addresses are remembered up to a limit, the latest ones", () => {
    const bans = new AddressBans()
    for (let count = 1; count <= 10; count++) bans.count("192.0.2.81")
    for (let host = 0; host < 60_000; host++)
      bans.count(`10.${host >> 16}.${(host >> 8) & 255}.${host & 255}`)
    expect(bans.size).toBe(50_000)
    expect(bans.isBanned("192.0.2.81")).toBe(false)
  })
})
