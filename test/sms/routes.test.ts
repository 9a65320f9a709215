import { expect, test } from "bun:test"
import { newId } from "../../src/core/ids"
import { now, secondsFromNow } from "../../src/core/time"
import { providerConfigs } from "../../src/providers/tables"
import type { SmsSettings } from "../../src/sms/providers/provider"
import { complaints, refusal } from "../harness/client"
import type { ProjectOptions } from "../harness/service"
import { sharedService } from "../harness/shared-service"
import { addReceived, addText, OURS } from "./texts"

const service = await sharedService()
const { store } = service
const ANN = "+4366012345678"

type Configuration = [provider: string, settings: SmsSettings]

const LOG: Configuration = ["log", {}]

/** A project with these configurations, in their order. */
async function configured(wanted: Configuration[] = [LOG], options: ProjectOptions = {}) {
  const project = await service.project(options)
  const { account_id, project_id } = project
  const at = now()
  const rows = wanted.map(([provider, settings], index) => ({
    ...{ id: newId(), account_id, project_id, kind: "sms_provider" as const, provider },
    ...{ name: `n${index}`, priority: index, enabled: true, status: "active" as const },
    ...{ credentials: null, settings: { ...settings }, created_at: at, updated_at: at },
  }))
  await store.tx((tx) => tx.insert(providerConfigs).values(rows))
  return project
}

test("the filters of the list tell what was sent from what came in", async () => {
  const project = await service.project()
  const sent = await addText(store, project, { to: ANN })
  const received = await addReceived(store, project, { to: ANN, body: "Yes" })
  const ours = encodeURIComponent(OURS)
  const cases: [string, string[]][] = [
    ["", [received, sent]],
    ["direction=inbound", [received]],
    ["direction=inbound&status=queued", []],
    ["direction=inbound&status=received", [received]],
    ["direction=outbound", [sent]],
    ["direction=outbound&status=received", []],
    ["status=received", [received]],
    [`status=received&to=${ours}`, [received]],
    [`direction=inbound&to=${ours}`, [received]],
    [`to=${ours}`, []],
    [`to=${encodeURIComponent(ANN)}`, [sent]],
    [`to=${ANN}`, [sent]], // the plus is a space there
  ]
  for (const [query, wanted] of cases) {
    const { body } = await project.get(`/v1/sms?${query}`)
    expect([query, body.data.map(({ id }: { id: string }) => id)]).toEqual([query, wanted])
  }
})

test("a text says of itself what its send said: whether it is a test, in every status", async () => {
  const project = await configured([["twilio", { allowed_countries: ["+43"] }], LOG])
  const scheduled_at = secondsFromNow(3600)
  for (const [to, is_test] of [
    [ANN, false],
    ["+14155550100", true],
  ] as const) {
    const answer = await project.post("/v1/sms", { to, body: "Ding", scheduled_at })
    expect(answer.body.data).toMatchObject({ to, is_test })
    const path = `/v1/sms/${answer.body.data.id}`
    expect((await project.get(path)).body.data).toMatchObject({ is_test, queued_at: null })
    const { body } = await project.post(`${path}/cancel`)
    expect(body.data).toMatchObject({ status: "cancelled", is_test, queued_at: null })
  }
})

test("a blank sender and a rendered text that is too long are refused, each with its reason", async () => {
  const project = await configured()
  const blank = await project.post("/v1/sms", { to: ANN, body: "Ding", from: "  " })
  expect(complaints(blank)).toEqual(["from"])
  for (const [name, reason] of [
    ["x".repeat(1601), "too_long"],
    [" ", "empty"],
  ]) {
    const variables = { name }
    const answer = await project.post("/v1/sms", { to: ANN, body: "{{name}}", variables })
    expect(refusal(answer)).toEqual([422, "template_render_failed"])
    expect(answer.body.error.details).toEqual({ missing: [], reason, field: "body" })
  }
})

test("the quota counts segments: a batch takes what has room, and a single one is told what was used", async () => {
  const project = await configured([LOG], { limits: { sms_per_month: 4 } })
  const [one, two] = ["x", "x".repeat(161)].map((body) => ({ to: ANN, body }))
  expect((await project.post("/v1/sms", two)).body.data).toMatchObject({ segments: 2 })
  const { data } = (await project.post("/v1/sms/batch", { messages: [one, two, one] })).body
  expect(data).toMatchObject({ total: 3, succeeded: 2, failed: 1 })
  expect(data.results).toMatchObject([
    { index: 0, status: "queued", segments: 1 },
    { index: 1, error: { code: "payment_required", details: { metric: "sms", limit: 4 } } },
    { index: 2, status: "queued", segments: 1 },
  ])
  const late = await project.post("/v1/sms", one)
  expect(refusal(late)).toEqual([402, "payment_required"])
  expect(late.body.error.details).toMatchObject({ metric: "sms", used: 4, limit: 4 })
})

test("a text over the sends of a second waits under the code of its channel", async () => {
  const project = await configured([LOG], { limits: { sends_per_second: 2 } })
  const text = { to: ANN, body: "Ding" }
  expect((await project.post("/v1/sms/batch", { messages: [text, text] })).status).toBe(200)
  const late = await project.post("/v1/sms", text)
  expect(refusal(late)).toEqual([429, "rate_limit_exceeded"])
  expect(late.body.error.details).toMatchObject({ scope: "sends", limit: 2, window_seconds: 1 })
})
