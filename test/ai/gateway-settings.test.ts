import { afterAll, expect, test } from "bun:test"
import { gatewayOf } from "../../src/ai/gateway"
import { loadSettings, useSettings } from "../../src/core/config"

const usual = loadSettings()
afterAll(() => useSettings(usual))

const models = { "ai.gateway.models.standard": "middle", "ai.gateway.models.deep": "large" }
const hosted = { "ai.gateway.kind": "openai", "ai.gateway.api_key": "secret", ...models }
const shared = { kind: "openai", base_url: "https://api.openai.com/v1", api_key: "secret" }
const local = { "ai.gateway.kind": "anthropic", "ai.gateway.base_url": "http://127.0.0.1:9/" }
const keyless = { kind: "anthropic", base_url: "http://127.0.0.1:9", api_key: null }
const large = { model: "large", tier: "deep" }

test.each([
  ["a tier has its own model", hosted, "deep", { ...shared, ...large }],
  ["or one whose price counts", hosted, "fast", { ...shared, model: "middle", tier: "standard" }],
  ["a local gateway needs no key", { ...local, ...models }, "deep", { ...keyless, ...large }],
  ["no kind, no gateway", models, "fast", undefined],
  ["no model, no gateway", { "ai.gateway.kind": "openai" }, "fast", undefined],
] as const)("%s", (_, flags, tier, gateway) => {
  useSettings(loadSettings({ environment: {}, flags }))
  expect(gatewayOf(tier)).toEqual(gateway as never)
})
