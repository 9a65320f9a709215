import { describe, expect, setDefaultTimeout, test } from "bun:test"
import { join } from "node:path"
import { freeOverdueCalls } from "../../src/ai/calls"
import { aiCalls, aiInstanceSpending, aiQuotas, aiSpending } from "../../src/ai/tables"
import { settings } from "../../src/core/config"
import { openStore } from "../../src/store/open"
import { openaiGateway } from "../fakes/openai-gateway"
import { movableClock } from "../harness/clock"
import { environmentOf, goodModel } from "../harness/model-answers"
import { freshDatabase, noPostgres } from "../harness/postgres"
import { initialise, lastingHome, startServe } from "../scenarios/serve"

setDefaultTimeout(300_000)

const clock = movableClock()

type Told = { data: { project_id: string; spend_usd: number } }

async function ask({ request }: Awaited<ReturnType<typeof startServe>>, accept: string) {
  const { data } = (await (await request("/v1/ai/entitlement")).json()) as Told
  const wanted = { channel: "email", project_id: data.project_id, brief: "A greeting." }
  const asked = { method: "POST", headers: { accept }, body: JSON.stringify(wanted) }
  return request("/v1/ai/templates/draft", asked)
}

async function killInMidStream(database_url: string | null) {
  await using model = await openaiGateway((call, nth) => ({
    ...goodModel(call),
    ...(nth === 1 && { after: "silence" }),
  }))
  using box = lastingHome()
  const price = { "ai.gateway.price_per_mtok.standard": { input: 3, output: 15 } }
  const env: Record<string, string> = {
    ...environmentOf({ ...model.settings, ...price }),
    BELFRY_PLANS_ENTERPRISE_AI_DRAFT_TEMPLATE_PER_MONTH: "1",
    ...(database_url !== null && { DATABASE_URL: database_url }),
  }
  const start = { home: box.home, api_key: await initialise(box.home, env), env }
  {
    await using server = await startServe(start)
    const { body } = await ask(server, "text/event-stream")
    const first = await body?.getReader().read()
    expect(new TextDecoder().decode(first?.value)).toContain("event: token")
    server.kill("SIGKILL")
    await server.exited
  }
  {
    await using server = await startServe(start)
    expect((await ask(server, "application/json")).status).toBe(402)
  }
  const data_dir = join(box.home, "belfry")
  const own = { data_dir, database_url, "storage.sqlite.path": join(data_dir, "belfry.db") }
  const store = await openStore({ ...settings(), ...own })
  const money = [aiSpending, aiInstanceSpending]
  const counts = async () => ({
    calls: (await store.read.select().from(aiCalls)).length,
    used: (await store.read.select().from(aiQuotas)).map(({ used }) => used),
    held: (await Promise.all(money.map((table) => store.read.select().from(table))))
      .flat()
      .map(({ held_micro }) => held_micro > 0),
  })
  await freeOverdueCalls(store)
  expect(await counts()).toEqual({ calls: 1, used: [1], held: [true, true] })
  clock.advance({ seconds: 180 }) // The lease is over.
  await freeOverdueCalls(store)
  expect(await counts()).toEqual({ calls: 0, used: [0], held: [false, false] })
  await store.close()
  await using server = await startServe(start)
  expect((await ask(server, "application/json")).status).toBe(200)
  const { data } = (await (await server.request("/v1/ai/usage")).json()) as Told
  const { input_tokens, output_tokens } = model.counted
  expect(data.spend_usd).toBeCloseTo((input_tokens * 3 + output_tokens * 15) / 1e6, 6)
  expect(model.problems).toEqual([])
}

describe("a server that is killed while a model answers gives the quota and the money back", () => {
  test("on SQLite", () => killInMidStream(null))

  test.skipIf(noPostgres())("on Postgres", async () => {
    await using database = await freshDatabase()
    await killInMidStream(database.url)
  })
})
