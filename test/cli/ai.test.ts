import { expect, test } from "bun:test"
import { framesOf } from "../../cli/lib/authoring-stream"
import { onTerminal } from "./belfry"
import { FakeApi, ID, KEY } from "./fake-api"
import { belfry } from "./lines"

const PROJECT = "0199a1c2-0000-7000-8000-00000000000a"

const metadata = {
  ...{ source: "model", model: "small", input_tokens: 812, output_tokens: 240, cost_usd: 0.0031 },
  quota: { used: 3, limit: 25 },
}
const texts = { subject: "On its way, {{first_name}}", html: "<p>Hi {{first_name}}</p>" }
const template = { name: "a", channel: "email", ...texts, text: null, variables: [] }
const corrected = [{ from: "fistname", to: "first_name" }]
const variables = { detected: ["first_name"], corrected, unknown: ["parcel"] }

type Frame = readonly [event: string, data: object]
const DONE: Frame = ["done", {}]
const DRAFT: Frame[] = [
  ["token", { text: '{"template": ' }],
  ["token", { text: "…\u001b[2J}" }],
  ["variables_validated", variables],
  ["complete", { template, metadata }],
  DONE,
]

const frameText = ([event, data]: Frame) =>
  `event: ${event}\ndata: ${JSON.stringify(data)}\n\n: ping\n\n`

/** A server whose model answers a draft with these events. */
function authoringApi(frames = DRAFT) {
  const headers = { "content-type": "text/event-stream" }
  const stream = { body: frames.map(frameText).join(""), headers }
  return new FakeApi()
    .data("GET /v1/ai/entitlement", { project_id: PROJECT })
    .answer("POST /v1/ai/templates/draft", stream)
    .answer("POST /v1/ai/broadcasts/analyze", stream)
    .data("POST /v1/templates", { id: ID, name: "shipped", version: 1, published_version: null })
}

const as = (api: FakeApi) => ["--url", api.url, "--api-key", KEY]
const BRIEF = ["ai", "draft", "It has shipped"]

test("events come out the same in whatever pieces their bytes arrive", async () => {
  const bytes = new TextEncoder().encode(DRAFT.map(frameText).join(""))
  for (const size of [1, 2, 7, 64, bytes.length]) {
    async function* pieces() {
      for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
    }
    const frames = await Array.fromAsync(framesOf(pieces()))
    expect(frames).toEqual(DRAFT.map(([event, data]) => ({ event, data: { ...data } })))
  }
})

test("a pipe gets one event a line, and --json the result alone", async () => {
  using api = authoringApi()
  const piped = await belfry([...BRIEF, "--variable", "first_name", ...as(api)])
  const lines = piped.out.trimEnd().split("\n")
  expect(lines.map((line) => JSON.parse(line).event)).toEqual(DRAFT.map(([event]) => event))
  expect(api.seen.map(({ path }) => path)).toEqual(["/v1/ai/entitlement", "/v1/ai/templates/draft"])
  expect(api.seen[1]?.headers.accept).toContain("text/event-stream")
  const wanted = { brief: "It has shipped", channel: "email", variables: ["first_name"] }
  expect(api.seen[1]?.body).toEqual({ ...wanted, project_id: PROJECT })

  const whole = await belfry([...BRIEF, "--json", ...as(api)])
  expect(JSON.parse(whole.out)).toEqual({ template, metadata, variables })
})

test("a terminal shows the text as it comes, then what it became, and --save stores it", async () => {
  using api = authoringApi()
  const { exit, out } = await onTerminal([...BRIEF, "--save", "shipped", ...as(api)])
  expect(exit).toBe(0)
  expect(out).not.toContain("\u001b[2J")
  const told = ["fistname → first_name", "parcel", "3 of 25 this month", "$0.0031"]
  for (const shown of ['{"template": ', ...told, "stored version 1 of shipped as a draft"])
    expect(out).toContain(shown)
  const stored = { name: "shipped", draft: true, channels: { email: texts }, variables: [] }
  expect(api.seen.at(-1)?.body).toEqual(stored)
})

test("a dry run shows the request in whatever form, and asks no model", async () => {
  using api = authoringApi()
  const { exit, out } = await belfry([...BRIEF, ...as(api), "--dry-run", "-o", "table"])
  expect([exit, JSON.parse(out).body.project_id]).toEqual([0, PROJECT])
  expect(api.seen.map(({ method }) => method)).toEqual(["GET"])
})

test("five subjects come as a table, or whole in a pipe", async () => {
  const suggestion = { rank: 1, subject: "On its way", predicted_open_rate: 0.4 }
  const suggestions = [{ ...suggestion, rationale: "It is plain.", length: 10, warnings: [] }]
  using api = authoringApi().data("POST /v1/ai/subjects/suggest", { suggestions, metadata })
  const words = ["ai", "suggest", "--body", "Hi", ...as(api)]
  expect(JSON.parse((await belfry(words)).out)).toEqual({ suggestions, metadata })
  const { out } = await belfry([...words, "-o", "table"])
  expect(out).toMatch(/1 +On its way +40 ?% +It is plain\./)
})

const failed = (code: string): Frame => ["error", { code, message: "No.", details: {} }]

test.each<[told: string, code: number, Frame[]]>([
  ["timeout", 75, [failed("timeout"), DONE]],
  ["provider_error", 1, [failed("provider_error"), DONE]],
  ["Sure!", 1, [["parse_failed", { raw_excerpt: "Sure!", retryable: true }], DONE]],
  ['"code":"broken_stream"', 69, DRAFT.slice(0, 4)],
])("what ends a stream in place of a result ends the command: %s", async (told, code, frames) => {
  using api = authoringApi(frames)
  const { exit, err } = await belfry([...BRIEF, "--save", "shipped", ...as(api)])
  expect([exit, err]).toEqual([code, expect.stringContaining(told)])
  expect(api.seen.some(({ path }) => path === "/v1/templates")).toBe(false)
})

const risk = { severity: "high", title: "Domain", detail: "It is not verified.", fix: "Verify it." }
const advisory = {
  ...{ summary: "The subject shouts.", recommended_action: "revise_before_send" },
  ...{ frequency_conflicts: [], audience_warnings: [], send_time_suggestions: [] },
  deliverability_risks: [risk],
  content_notes: [{ severity: "low", title: "Shouting", detail: "It has no lower case." }],
}

test("advice is shown, also where a refusal carries it", async () => {
  using api = authoringApi([["complete", { advisory, metadata }], DONE])
  const given = ["--subject", "SALE", "--body", "now", "--audience", "120"]
  const words = ["ai", "analyze", ...given, ...as(api), "-o", "table"]
  const { out } = await belfry(words)
  for (const shown of ["revise before send", "It is not verified.", "→ Verify it.", "Shouting"])
    expect(out).toContain(shown)
  const draft = { channel: "email", subject: "SALE", body: "now", topic_key: null }
  const sent = { project_id: PROJECT, draft: { ...draft, audience_size_estimate: 120 } }
  expect(api.seen.at(-1)?.body).toEqual(sent)

  const details = { used: 4, advisory, metadata }
  api.error("POST /v1/ai/broadcasts/analyze", 402, "ai_quota_exceeded", details)
  const refused = await belfry(words)
  expect(refused).toMatchObject({ exit: 6, out: expect.stringContaining("→ Verify it.") })
  expect(refused.err).not.toContain("Verify it.")
})
