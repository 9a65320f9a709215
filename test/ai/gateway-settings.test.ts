import { afterAll, expect, test } from "bun:test"
import { gatewayOf } from "../../src/ai/gateway"
import { loadSettings, useSettings } from "../../src/core/config"

const usual = loadSettings()
afterAll(() => useSettings(usual))

const models = { "ai.gateway.models.standard": "middle", "ai.gateway.models.deep": "large" }
const at = (flags: object) => useSettings(loadSettings({ environment: {}, flags }))

test("a tier has its own model, or that of another tier, whose price counts", () => {
  at({ "ai.gateway.kind": "openai", "ai.gateway.api_key": "secret", ...models })
  const shared = { kind: "openai", base_url: "https://api.openai.com/v1", api_key: "secret" }
  expect(gatewayOf("deep")).toEqual({ ...shared, model: "large", tier: "deep" } as never)
  expect(gatewayOf("fast")).toEqual({ ...shared, model: "middle", tier: "standard" } as never)
})

test("a local gateway needs no key, and its address may end in a slash", () => {
  at({ "ai.gateway.kind": "anthropic", "ai.gateway.base_url": "http://127.0.0.1:9/", ...models })
  expect(gatewayOf("deep")).toMatchObject({ base_url: "http://127.0.0.1:9", api_key: null })
})

test.each([
  ["no kind", models],
  ["no model", { "ai.gateway.kind": "openai" }],
])("with %s there is no gateway", (_, flags) => {
  at(flags)
  expect(gatewayOf("fast")).toBeUndefined()
})
