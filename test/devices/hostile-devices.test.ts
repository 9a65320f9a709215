import { describe, expect, test } from "bun:test"
import { complaints, refusal } from "../harness/client"
import { sharedService } from "../harness/shared-service"
import { data, phone, subscription } from "./registering"

const service = await sharedService()
const ALL = "/v1/devices"
const project = await service.project()

const web = (endpoint?: string, keys: object = {}) => {
  const { keys: own, ...rest } = subscription(endpoint)
  return phone({
    ...{ platform: "web", token: undefined },
    subscription: { ...rest, keys: { ...own, ...keys } },
  })
}

/** 65 bytes that are no point of the curve. */
const NO_POINT = Buffer.from([4, ...Array(64).fill(7)]).toString("base64url")

describe("a registration", () => {
  test.each([
    ["user_id", phone({ user_id: undefined })],
    ["platform", phone({ platform: "windows" })],
    ["provider", phone({ provider: "wns" })],
    ["token", phone({ token: undefined })],
    ["token", phone({ token: "two words" })],
    ["token", phone({ token: "x".repeat(4097) })],
    ["subscription", phone({ subscription: subscription() })],
    ["token", { ...web(), token: "token" }],
    ["subscription", phone({ provider: "webpush", token: undefined })],
    ["subscription.keys.p256dh", web(undefined, { p256dh: NO_POINT })],
    ["subscription.keys.p256dh", web(undefined, { p256dh: "BA" })],
    ["subscription.keys.p256dh", web(undefined, { p256dh: "not base64" })],
    ["subscription.keys.auth", web(undefined, { auth: "c2hvcnQ" })],
    ["apns_environment", phone({ apns_environment: "sandbox" })],
    ["locale", phone({ locale: "no_locale!" })],
    ["timezone", phone({ timezone: "Vienna" })],
    ["device_id", phone({ device_id: "a\nb" })],
    ["device_id", phone({ device_id: "" })],
    ["metadata", phone({ metadata: { a: "x".repeat(16_384) } })],
  ])("with a wrong %s is refused", async (field, body) => {
    const refused = await project.post(ALL, body)
    expect(refused.status).toBe(422)
    const { details } = refused.body.error
    expect(details.fields ? complaints(refused) : [details.field]).toContain(field)
  })

  test.each(["batch", "bulk", "categories", "external", "preferences", "stats", "user"])(
    "may not be called %s, which is a part of paths",
    async (device_id) => {
      const refused = await project.post(ALL, phone({ device_id }))
      expect(refused.body.error.details.fields[0].code).toBe("reserved")
    },
  )

  test.each([
    "http://93.184.216.34/push",
    "https://10.0.0.1/push",
    "https://169.254.169.254/latest/meta-data",
    "https://[::ffff:10.0.0.1]/push",
    "https://user@93.184.216.34/push",
    "ftp://93.184.216.34/push",
    "https://93.184.216.34/pu sh",
    "nothing",
  ])("may not lead to %s", async (endpoint) => {
    const refused = await project.post(ALL, web(endpoint))
    expect(refusal(refused)).toEqual([422, "invalid_url"])
    const made = data(await project.post(ALL, { ...web(), device_id: "web-1" }))
    const body = { subscription: subscription(endpoint) }
    const moved = await project.call("PATCH", `${ALL}/${made.id}`, { body })
    expect(refusal(moved)).toEqual([422, "invalid_url"])
  })

  test("may lead where the operator allows it, also without TLS", async () => {
    const made = await project.post(ALL, { ...web("http://127.0.0.1:9/push"), device_id: "own" })
    expect([made.status, data(made).token]).toEqual([201, "http://127.0.0.1:9/push"])
  })
})

test("a change has the token of the device's own provider", async () => {
  const { id } = data(await project.post(ALL, phone({ device_id: "own-1", token: "own-1" })))
  const change = (body: object) => project.call("PATCH", `${ALL}/${id}`, { body })
  expect((await change({ subscription: subscription() })).status).toBe(422)
  await project.post(ALL, phone({ device_id: "bobs", token: "bobs", user_id: "bob" }))
  expect(refusal(await change({ token: "bobs" }))).toEqual([409, "duplicate_device"])
  await project.post(`${ALL}/bobs/unlink`)
  expect(data(await change({ token: "bobs" }))).toMatchObject({ id, token: "bobs", user_id: "ann" })
  expect((await project.get(`${ALL}/bobs`)).status).toBe(404)
  expect(refusal(await project.get(`${ALL}/%00`))).toEqual([404, "device_not_found"])
  expect(data(await project.call("DELETE", `${ALL}/user/%00`)).deleted).toBe(0)
})

describe("a batch", () => {
  test("registers what can be, and names the rest by their places", async () => {
    const { post, get } = await service.project()
    const taken = phone({ device_id: "other", user_id: "bob" })
    const devices = [phone(), { platform: "ios" }, web("https://10.0.0.1/x"), taken, phone()]
    const { body } = await post(`${ALL}/batch`, { devices })
    const { results, ...counts } = body.data
    expect(counts).toEqual({ total: 5, succeeded: 2, failed: 3 })
    const codes = results.map((one: { error?: { code: string } }) => one.error?.code ?? "ok")
    expect(codes).toEqual(["ok", "validation_error", "invalid_url", "duplicate_device", "ok"])
    expect(results[2].error.details.field).toBe("devices.2.subscription.endpoint")
    expect(results[4]).toEqual({ ...results[0], index: 4 })
    expect(data(await get(`${ALL}/stats`)).total).toBe(1)
  })

  test("takes 1,000 devices, and no more", async () => {
    const { post, get } = await service.project()
    const many = (n: number) =>
      Array.from({ length: n }, (_, at) =>
        phone({ device_id: `d${at}`, token: `t${at}`, user_id: `u${at % 50}`, metadata: { at } }),
      )
    const { body } = await post(`${ALL}/batch`, { devices: many(1000) })
    expect([body.data.succeeded, body.data.results.length]).toEqual([1000, 1000])
    expect(data(await get(`${ALL}/stats`)).total).toBe(1000)
    for (const devices of [many(1001), []]) {
      expect((await post(`${ALL}/batch`, { devices })).status).toBe(422)
    }
  })
})
