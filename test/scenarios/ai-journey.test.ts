import { expect, test } from "bun:test"
import type { Components } from "../../src/client/components"
import { onTerminal } from "../cli/belfry"
import { anthropicGateway } from "../fakes/anthropic-gateway"
import { openaiGateway } from "../fakes/openai-gateway"
import { type Belfry, startBelfry } from "../harness/binary"
import { environmentOf, goodModel } from "../harness/model-answers"
import { lean } from "./serve"

/** Runs a command that must succeed, and reads the JSON that it prints. */
async function json<Answer>(server: Belfry, ...words: string[]): Promise<Answer> {
  const { code, stdout, stderr } = await server.cli(...words)
  if (code !== 0) throw new Error(`${words.join(" ")} ended with ${code}: ${stderr}`)
  return JSON.parse(stdout)
}

test("without a gateway a draft gets advice: its subject shouts, and its domain is not verified", async () => {
  await using server = await startBelfry({ env: lean })
  await json(server, "settings", "set", "default_from=news@acme.test")
  expect(await json(server, "ai", "entitlement")).toMatchObject({ gateway_configured: false })
  const words = ["--subject", "BIG SALE ONLY TODAY", "--body", "<p>Everything must go.</p>"]
  const told = await json<Components["AiAnalysis"]>(server, "ai", "analyze", ...words, "--json")
  const { advisory, metadata } = told
  expect(metadata).toMatchObject({ source: "rules", degraded: true, model: null, cost_usd: 0 })
  expect(advisory.recommended_action).toBe("revise_before_send")
  const titled = (title: string) => expect.objectContaining({ title })
  expect(advisory.deliverability_risks).toContainEqual(titled("The From domain is not verified"))
  expect(advisory.content_notes).toContainEqual(titled("The subject shouts"))
  const refused = await server.cli("ai", "draft", "It has shipped")
  expect([refused.code, JSON.parse(refused.stderr).error.code]).toEqual([75, "service_unavailable"])
})

const STARTER_DRAFTS = 25
/** US dollars for a million tokens, so that a token costs one or two millionths. */
const PRICE = { input: 1, output: 2 }

test.each([
  ["openai", openaiGateway],
  ["anthropic", anthropicGateway],
] as const)(
  "with a gateway of the form %s a Starter account drafts 25 times a month",
  async (_, open) => {
    await using model = await open(goodModel)
    const settings = { ...model.settings, "ai.gateway.price_per_mtok.standard": PRICE }
    await using server = await startBelfry({ env: { ...lean, ...environmentOf(settings) } })
    const folder = ["--data-dir", server.data_dir]
    await json(server, "admin", "plan", "set", "local", "starter", ...folder)
    const greeting = ["--name", "greeting", "--subject", "Hi {{first_name}}"]
    await json(server, "templates", "create", ...greeting)

    const draft = ["ai", "draft", "Tell customers that their order has shipped"]
    const env = { BELFRY_URL: server.url, BELFRY_API_KEY: server.api_key, NO_COLOR: "1" }
    const shown = await onTerminal([...draft, "--save", "shipped"], { env })
    expect([shown.exit, shown.out]).toEqual([0, expect.stringContaining('{"template"')])
    expect(shown.out).toContain("firstname → first_name")
    expect(await json(server, "templates", "get", "shipped")).toMatchObject({
      ...{ status: "draft", published_version: null },
      subject: "{{first_name}}, your order has shipped",
    })

    const { project_id } = await json<{ project_id: string }>(server, "ai", "entitlement")
    const body = JSON.stringify({ channel: "email", project_id, brief: "It has shipped" })
    const ask = () => server.request("/v1/ai/templates/draft", { method: "POST", body })
    for (let nth = 1; nth < STARTER_DRAFTS; nth++) expect((await ask()).status).toBe(200)
    const { code, stderr } = await server.cli(...draft)
    const details = { used: STARTER_DRAFTS, limit: STARTER_DRAFTS }
    const error = { code: "ai_quota_exceeded", details }
    expect({ code, ...JSON.parse(stderr) }).toMatchObject({ code: 6, error })
    expect((await ask()).status).toBe(402)

    expect([model.problems, model.calls.length]).toEqual([[], STARTER_DRAFTS])
    const usage = await json<Components["AiUsage"]>(server, "ai", "usage")
    const { input_tokens, output_tokens } = model.counted
    const micro = input_tokens * PRICE.input + output_tokens * PRICE.output
    expect(usage.spend_usd).toBeCloseTo(micro / 1_000_000, 9)
    const drafts = { action: "draft_template", count: STARTER_DRAFTS }
    expect(usage.by_action).toContainEqual(expect.objectContaining(drafts))
  },
)
