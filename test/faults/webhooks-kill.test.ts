import { Database } from "bun:sqlite"
import { expect, test } from "bun:test"
import { rmSync } from "node:fs"
import { join } from "node:path"
import { shownId } from "../../src/core/ids"
import { verify } from "../../src/lib/signature"
import { type Received, type Receiver, receiver } from "../fakes/receiver"
import { type Belfry, makeHome, startBelfry } from "../harness/binary"
import { sizes } from "../harness/sizes"

const TRIGGERS = 8
const ROUNDS = Math.max(3, Math.ceil(sizes.kills / 3))
const ENV = { BELFRY_STORAGE_BALLAST_MB: "0", BELFRY_STORAGE_MIN_FREE_MB: "0" }

interface Endpoint {
  id: string
  secret: string
}

async function call<Answer>(server: Belfry, path: string, body?: object): Promise<Answer> {
  const init = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) }
  const response = await server.request(path, init)
  const answer = (await response.json()) as { data: Answer }
  if (!response.ok) throw new Error(`${path} answered ${response.status}`)
  return answer.data
}

const subscribe = (server: Belfry, fake: Receiver, retry: number) =>
  call<Endpoint>(server, "/v1/webhooks", {
    url: fake.url,
    events: ["domain.*"],
    retry_policy: { max_attempts: 10, intervals: [retry] },
  })

/** Triggers events until the server is gone. Ids of those that were acknowledged. */
async function triggerUntilKilled(server: Belfry, fake: Receiver): Promise<string[]> {
  const acknowledged: string[] = []
  let is_alive = true
  const trigger = async () => {
    while (is_alive) {
      try {
        const made = await call<{ id: string }>(server, "/v1/events/trigger", {
          type: "domain.verified",
        })
        acknowledged.push(made.id)
      } catch (error) {
        if (is_alive) throw error // it was not the kill
      }
    }
  }
  const before = fake.received.length
  const load = Promise.all(Array.from({ length: TRIGGERS }, trigger))
  await fake.arrived(before + 40) // so that some are on their way at any moment
  is_alive = false
  server.kill("SIGKILL")
  await server.exited
  await load
  return acknowledged
}

test(`${ROUNDS} times kill -9 between events and their deliveries, and every event arrives`, async () => {
  const home = makeHome()
  // Slow enough that attempts are in flight when the server dies.
  using fake = receiver(async () => {
    await Bun.sleep(5)
    return new Response("taken")
  })
  const acknowledged: string[] = []
  try {
    let endpoint: Endpoint | undefined
    for (let round = 0; round < ROUNDS; round++) {
      await using server = await startBelfry({ home, env: ENV })
      endpoint ??= await subscribe(server, fake, 1)
      acknowledged.push(...(await triggerUntilKilled(server, fake)))
    }
    await using last = await startBelfry({ home, env: ENV })
    while (openRows(home) > 0) await Bun.sleep(50)
    expect(await last.stop()).toBe(0)
    expect(acknowledged.length).toBeGreaterThan(ROUNDS)
    judge(fake.received, acknowledged, endpoint?.secret ?? "")
    validateRows(home, acknowledged)
  } finally {
    rmSync(home, { recursive: true, force: true })
  }
})

function judge(received: Received[], acknowledged: string[], secret: string) {
  const copies = Map.groupBy(received, ({ id }) => id)
  expect(acknowledged.filter((id) => !copies.has(id))).toEqual([])
  expect(new Set(acknowledged).size).toBe(acknowledged.length)
  // What came twice was in flight at a kill, and came as the same bytes.
  for (const list of copies.values()) expect(new Set(list.map(({ body }) => body)).size).toBe(1)
  for (const { headers, body } of received) {
    const now_seconds = Number(headers["webhook-timestamp"])
    expect(verify({ secret, headers, body, now_seconds })).toBe("ok")
  }
}

function validateRows(home: string, acknowledged: string[]) {
  using database = new Database(join(home, "belfry/belfry.db"), { readonly: true })
  const rows = database.query("SELECT event_id, status FROM webhook_deliveries").all() as {
    event_id: Uint8Array
    status: string
  }[]
  expect(rows.filter(({ status }) => status !== "success")).toEqual([])
  const ids = new Set(rows.map(({ event_id }) => `evt_${shownId(event_id)}`))
  expect(ids.size).toBe(rows.length)
  expect(acknowledged.filter((id) => !ids.has(id))).toEqual([])
}

function openRows(home: string): number {
  using database = new Database(join(home, "belfry/belfry.db"), { readonly: true })
  const open =
    "SELECT count(*) AS rows FROM webhook_deliveries WHERE status IN ('pending', 'failed')"
  return (database.query(open).get() as { rows: number }).rows
}

test("the breaker counts on after kill -9, and opens at ten", async () => {
  const home = makeHome()
  using fake = receiver(() => new Response("no", { status: 500 }))
  try {
    const first = await startBelfry({ home, env: ENV })
    const { id } = await subscribe(first, fake, 3600)
    const shown = (server: Belfry) =>
      call<{ status: string; consecutive_failures: number }>(server, `/v1/webhooks/${id}`)
    const failures = async (server: Belfry, count: number) => {
      while ((await shown(server)).consecutive_failures < count) await Bun.sleep(10)
    }
    const trigger = (server: Belfry) =>
      call(server, "/v1/events/trigger", { type: "domain.verified" })
    for (let number = 1; number <= 9; number++) {
      await trigger(first)
      await failures(first, number)
    }
    first.kill("SIGKILL")
    await first.exited
    await using second = await startBelfry({ home, env: ENV })
    expect(await shown(second)).toMatchObject({ status: "active", consecutive_failures: 9 })
    await trigger(second)
    await failures(second, 10)
    expect(await shown(second)).toMatchObject({
      status: "disabled",
      disabled_reason: "circuit_breaker",
      consecutive_failures: 10,
      held_count: 10,
    })
  } finally {
    rmSync(home, { recursive: true, force: true })
  }
})
