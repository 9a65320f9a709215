import { describe, expect, test } from "bun:test"
import { deviceCodes } from "../../src/identity/tables"
import { complaints, refusal } from "../harness/client"
import { movableClock } from "../harness/clock"
import { signedIn } from "../harness/people"
import { sharedService } from "../harness/shared-service"
import { BEHIND_PROXY, PASSWORD, stranger, visitor } from "./entrance"

const clock = movableClock()
const service = await sharedService(BEHIND_PROXY)
const DEVICE = "/v1/session/device"

async function begun(client_name = "belfry on box") {
  const door = stranger(service)
  const { status, body } = await door.post(DEVICE, { client_name })
  expect(status).toBe(201)
  const { device_code, user_code } = body.data as { device_code: string; user_code: string }
  const ask = () => door.post(`${DEVICE}/token`, { device_code })
  return { door, device_code, user_code, body, ask }
}

const reason = ({ status, body }: Awaited<ReturnType<ReturnType<typeof stranger>["post"]>>) => [
  status,
  body.error.code,
  body.error.details.reason,
]

describe("a sign-in on another device", () => {
  test("begins with two codes", async () => {
    const { body } = await begun()
    expect(body.data).toEqual({
      device_code: expect.stringMatching(/^belfry_device_[\w-]{43}$/),
      user_code: expect.stringMatching(/^[B-DF-HJ-NP-TV-XZ]{4}-[B-DF-HJ-NP-TV-XZ]{4}$/),
      verification_uri: "http://belfry.test/device",
      expires_in: 600,
      interval: 5,
    })
    const rows = JSON.stringify(await service.store.read.select().from(deviceCodes))
    expect(rows).not.toContain(body.data.device_code)
    expect(rows).not.toContain(body.data.user_code)
    expect(complaints(await stranger(service).post(DEVICE, {}))).toEqual(["client_name"])
  })

  test("waits, then brings a session of whoever approved, once", async () => {
    const { ask, door, user_code } = await begun("belfry on box")
    const me = await visitor(service)
    expect(reason(await ask())).toEqual([422, "validation_error", "authorization_pending"])
    const typed = user_code.toLowerCase().replace("-", " ")
    const approved = await me.post(`${DEVICE}/approve`, { user_code: typed, approve: true })
    expect([approved.status, approved.body.data]).toEqual([200, { approved: true }])
    clock.advance({ seconds: 5 })
    const got = await ask()
    expect([got.status, got.body.data.user.id]).toEqual([200, me.user.id])
    expect(reason(await ask())).toEqual([422, "validation_error", "expired"])

    const device = signedIn(service.app, got.body.data.access_token)
    const { session } = (await device.get("/v1/session")).body.data
    expect(session).toMatchObject({ client_name: "belfry on box", ip: door.ip })
  })

  test("asked for too early slows down by five seconds each time", async () => {
    clock.freeze()
    const { ask } = await begun()
    await ask()
    clock.advance({ seconds: 4 })
    const early = await ask()
    expect(reason(early)).toEqual([422, "validation_error", "slow_down"])
    expect(early.body.error.details.interval).toBe(10)
    clock.advance({ seconds: 9 })
    expect((await ask()).body.error.details).toMatchObject({ reason: "slow_down", interval: 15 })
    clock.advance({ seconds: 15 })
    expect(reason(await ask())).toEqual([422, "validation_error", "authorization_pending"])
  })

  test("can be denied, and cannot be approved after that", async () => {
    const { ask, user_code } = await begun()
    const me = await visitor(service)
    const denied = await me.post(`${DEVICE}/approve`, { user_code, approve: false })
    expect(denied.body.data).toEqual({ approved: false })
    expect(refusal(await me.post(`${DEVICE}/approve`, { user_code, approve: true }))).toEqual([
      404,
      "not_found",
    ])
    expect(reason(await ask())).toEqual([422, "validation_error", "denied"])
  })

  test("approved but not fetched ends with the sessions of whoever approved", async () => {
    const { ask, user_code } = await begun()
    const me = await visitor(service)
    await me.post(`${DEVICE}/approve`, { user_code, approve: true })
    const change = { current_password: PASSWORD, new_password: "New-Horse-88" }
    expect((await me.post("/v1/users/me/password", change)).status).toBe(200)
    expect(reason(await ask())).toEqual([422, "validation_error", "denied"])
  })

  test("expires after ten minutes, approved or not", async () => {
    const [first, second] = [await begun(), await begun()]
    const me = await visitor(service)
    await me.post(`${DEVICE}/approve`, { user_code: second.user_code, approve: true })
    clock.advance({ seconds: 601 })
    expect(reason(await first.ask())[2]).toBe("expired")
    expect(reason(await second.ask())[2]).toBe("expired")
    const late = { user_code: first.user_code, approve: true }
    const again = await visitor(service)
    expect(refusal(await again.post(`${DEVICE}/approve`, late))).toEqual([404, "not_found"])
  })

  test("with an unknown code answers as an expired one", async () => {
    const door = stranger(service)
    expect(reason(await door.post(`${DEVICE}/token`, { device_code: "x" }))[2]).toBe("expired")
    const me = await visitor(service)
    const wrong = { user_code: "BBBB-BBBB", approve: true }
    expect(refusal(await me.post(`${DEVICE}/approve`, wrong))).toEqual([404, "not_found"])
    expect((await door.post(`${DEVICE}/approve`, wrong)).status).toBe(401)
  })

  test("brings one session to two who ask at once", async () => {
    const { ask, user_code } = await begun()
    const me = await visitor(service)
    await me.post(`${DEVICE}/approve`, { user_code, approve: true })
    const statuses = (await Promise.all([ask(), ask(), ask()])).map(({ status }) => status)
    expect(statuses.sort()).toEqual([200, 422, 422])
  })
})
