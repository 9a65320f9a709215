import { beforeEach, describe, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { recentLines } from "../../src/core/log"
import { NetError } from "../../src/core/net"
import { settleDeliveries } from "../../src/webhooks/settle-deliveries"
import { deliveries, webhooks } from "../../src/webhooks/tables"
import { quietLog } from "../harness/quiet"
import { testService } from "../harness/service"
import { endpoint, happens, hook } from "./endpoints"

quietLog()
const unknown = new Set<string>()
const service = await testService()
const { store } = service
const names = async (host: string) => {
  if (unknown.has(host)) throw new NetError("dns", `${host} cannot be resolved`)
  return ["127.0.0.1"]
}
service.parts.webhooks.address.resolver = { a: names, aaaa: async () => [] }

const GONE = "http://gone.hooks.test:4000/in"
const THERE = "http://there.hooks.test:4000/in"
const HOOKS = "/v1/webhooks"
const warning = {
  code: "host_not_resolved",
  message: expect.stringContaining("gone.hooks.test does not resolve"),
}

beforeEach(() => {
  unknown.clear()
  unknown.add("gone.hooks.test")
})

const warned = () => recentLines().filter((line) => line.includes("gone.hooks.test does not"))

describe("a host that does not resolve", () => {
  test("is taken, and the answer, the list and the log warn", async () => {
    const project = await service.project()
    const before = warned().length
    const { status, body } = await project.post(HOOKS, hook({ url: GONE }))
    expect(status).toBe(201)
    expect(body.data.warnings).toEqual([warning])
    expect(warned()).toHaveLength(before + 1)
    expect(JSON.parse(warned().at(-1) ?? "")).toMatchObject({
      level: "warn",
      webhook_id: body.data.id,
    })
    await endpoint(project, { url: THERE })
    const { data, meta } = (await project.get(HOOKS)).body
    expect(meta.warnings).toEqual([{ webhook_id: body.data.id, ...warning }])
    expect(data).toHaveLength(2)
    expect(data[0]).not.toHaveProperty("warnings")
    expect((await project.get(`${HOOKS}?per_page=1`)).body.meta.warnings).toEqual([])
  })

  test("warns at a change until the name has an address", async () => {
    const project = await service.project()
    const { id, warnings } = await endpoint(project, { url: THERE })
    expect(warnings).toEqual([])
    for (const method of ["PATCH", "PUT"]) {
      const change = (body: object) => project.call(method, `${HOOKS}/${id}`, { body })
      expect((await change({ url: GONE })).body.data.warnings).toEqual([warning])
      expect((await change({ description: method })).body.data.warnings).toEqual([warning])
      unknown.clear()
      expect((await change({ url: GONE })).body.data.warnings).toEqual([])
      expect((await project.get(HOOKS)).body.meta.warnings).toEqual([])
      unknown.add("gone.hooks.test")
    }
  })

  test("is noticed when deliveries find it, and forgotten when one arrives", async () => {
    const project = await service.project()
    const { id } = await endpoint(project, { url: THERE })
    const settle = async (error: "dns" | "timeout" | null) => {
      await happens(project)
      const ours = eq(deliveries.webhook_id, id)
      const claimed = (await store.read.select().from(deliveries).where(ours)).at(-1)
      if (!claimed) throw new Error("no delivery")
      const nothing = { response_headers: null, response_body: null, retry_after_seconds: null }
      const outcome = {
        ...{ at: new Date().toISOString(), url: THERE, error, latency_ms: 1, ...nothing },
        ...{ response_status: error ? null : 200, request_headers: {} },
      }
      const end = { outcome, transform_failed: false }
      const settled = { row: claimed, end, after: claimed, reason: null }
      await store.tx((tx) => settleDeliveries(tx, [settled], 10))
    }
    const warnings = async () => (await project.get(HOOKS)).body.meta.warnings
    await settle("dns")
    expect(await warnings()).toMatchObject([{ webhook_id: id, code: "host_not_resolved" }])
    await settle("timeout")
    expect(await warnings()).toEqual([])
    await settle("dns")
    expect(await warnings()).toHaveLength(1)
    await settle(null)
    expect(await warnings()).toEqual([])
    const [row] = await store.read.select().from(webhooks).where(eq(webhooks.id, id))
    expect(row?.consecutive_failures).toBe(0)
  })

  test("stays refused where it leads to an address that is not allowed", async () => {
    const project = await service.project()
    const { address } = service.parts.webhooks
    const inward = { a: async () => ["10.0.0.1"], aaaa: async () => [] }
    const { resolver } = address
    address.resolver = inward
    const refused = await project.post(HOOKS, hook({ url: GONE }))
    address.resolver = resolver
    expect([refused.status, refused.body.error.code]).toEqual([422, "invalid_url"])
  })
})
