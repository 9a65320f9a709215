import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test"
import { join } from "node:path"
import { freeOverdueCalls } from "../../src/ai/calls"
import { aiCalls, aiInstanceSpending, aiQuotas, aiSpending } from "../../src/ai/tables"
import { settings } from "../../src/core/config"
import { clock } from "../../src/core/time"
import { openStore } from "../../src/store/open"
import { openaiGateway } from "../fakes/openai-gateway"
import { freshDatabase, noPostgres } from "../harness/postgres"
import { initialise, lastingHome, startServe } from "../scenarios/serve"

setDefaultTimeout(300_000)

const { read } = clock
afterAll(() => {
  clock.read = read
})

const TEMPLATE = { name: "a", subject: "Hi", html: "<p>Hi</p>", text: null, variables: [] }
const ANSWER = JSON.stringify({ template: { ...TEMPLATE, channel: "email" } })

type Server = Awaited<ReturnType<typeof startServe>>

const dataOf = async <Data>(server: Server, path: string) =>
  ((await (await server.request(path)).json()) as { data: Data }).data

async function ask(server: Server, accept: string) {
  const { project_id } = await dataOf<{ project_id: string }>(server, "/v1/ai/entitlement")
  const wanted = { channel: "email", project_id, brief: "A greeting." }
  const path = "/v1/ai/templates/draft"
  return server.request(path, {
    ...{ method: "POST", headers: { accept }, body: JSON.stringify(wanted) },
  })
}

/** Everything that is counted, a lease later. */
async function free(home: string, database_url: string | null) {
  const path = join(home, "belfry", "belfry.db")
  const data_dir = join(home, "belfry")
  const store = await openStore({
    ...{ ...settings(), data_dir, database_url, "storage.sqlite.path": path },
  })
  const counts = async () => ({
    calls: (await store.read.select().from(aiCalls)).length,
    used: (await store.read.select().from(aiQuotas)).map(({ used }) => used),
    held: [
      ...(await store.read.select().from(aiSpending)),
      ...(await store.read.select().from(aiInstanceSpending)),
    ].map(({ held_micro }) => held_micro > 0),
  })
  try {
    const left = await counts()
    await freeOverdueCalls(store)
    expect(await counts()).toEqual(left)
    clock.read = () => read() + 180_000
    await freeOverdueCalls(store)
    return { left, freed: await counts() }
  } finally {
    clock.read = read
    await store.close()
  }
}

async function killInMidStream(database_url: string | null) {
  await using model = await openaiGateway((_, nth) =>
    nth === 1 ? { pieces: ['{"template"'], after: "silence" } : { pieces: [ANSWER] },
  )
  using box = lastingHome()
  const env: Record<string, string> = {
    BELFRY_AI_GATEWAY_KIND: "openai",
    BELFRY_AI_GATEWAY_BASE_URL: model.url,
    BELFRY_AI_GATEWAY_API_KEY: String(model.settings["ai.gateway.api_key"]),
    BELFRY_AI_GATEWAY_MODELS_STANDARD: "model-standard",
    BELFRY_AI_GATEWAY_PRICE_PER_MTOK_STANDARD: '{"input": 3, "output": 15}',
    BELFRY_PLANS_ENTERPRISE_AI_DRAFT_TEMPLATE_PER_MONTH: "1",
    ...(database_url !== null && { DATABASE_URL: database_url }),
  }
  const start = { home: box.home, api_key: await initialise(box.home, env), env }
  {
    await using server = await startServe(start)
    const stream = await ask(server, "text/event-stream")
    const reader = stream.body?.getReader()
    const first = await reader?.read()
    expect(new TextDecoder().decode(first?.value)).toContain("event: token")
    server.kill("SIGKILL")
    await server.exited
  }
  {
    await using server = await startServe(start)
    expect((await ask(server, "application/json")).status).toBe(402)
  }
  expect(await free(box.home, database_url)).toEqual({
    left: { calls: 1, used: [1], held: [true, true] },
    freed: { calls: 0, used: [0], held: [false, false] },
  })
  await using server = await startServe(start)
  expect((await ask(server, "application/json")).status).toBe(200)
  const { spend_usd } = await dataOf<{ spend_usd: number }>(server, "/v1/ai/usage")
  const { input_tokens, output_tokens } = model.counted
  expect(spend_usd).toBeCloseTo((input_tokens * 3 + output_tokens * 15) / 1e6, 6)
  expect(model.problems).toEqual([])
}

describe("a server that is killed while a model answers gives the quota and the money back", () => {
  test("on SQLite", () => killInMidStream(null))

  test.skipIf(noPostgres())("on Postgres", async () => {
    await using database = await freshDatabase()
    await killInMidStream(database.url)
  })
})
