import { describe, expect, test } from "bun:test"
import { rmSync } from "node:fs"
import { join } from "node:path"
import { and, count, eq, isNotNull } from "drizzle-orm"
import { settings } from "../../src/core/config"
import { fanOuts } from "../../src/fan-out/tables"
import { accounts, projects } from "../../src/identity/tables"
import { messages } from "../../src/messages/tables"
import { openStore } from "../../src/store/open"
import type { Store } from "../../src/store/store"
import { subscribers } from "../../src/subscribers/tables"
import { countingRelay } from "../fakes/counting-relay"
import { audience, record } from "../fan-out/audiences"
import { type Belfry, makeHome, startBelfry } from "../harness/binary"
import { note } from "../harness/peers"
import { freshDatabase, noPostgres } from "../harness/postgres"
import { sizes } from "../harness/sizes"
import { drained, until } from "../scenarios/mails"
import { relaySettings } from "../scenarios/serve"

const TOPIC = "releases"
/** Members of the topic that leave it, and others that block everything, while the walk goes on. */
const RESTLESS = 40
const WALK_MS = { least: 50, most: 350 }

interface Stage {
  homes: string[]
  env: Record<string, string>
  /** The database itself, while no server that must be alone has it open. */
  open(): Promise<Store>
}

const stage = (database_url: string | null, port: number): Stage => {
  const homes = database_url === null ? [makeHome()] : [makeHome(), makeHome()]
  const shared = {
    DATABASE_URL: database_url ?? "",
    BELFRY_SECURITY_MASTER_KEY: Buffer.alloc(32, 7).toString("base64"),
    BELFRY_STORAGE_BLOBS_DIR: join(homes[0] ?? "", "blobs"),
  }
  const data_dir = join(homes[0] ?? "", "belfry")
  return {
    homes,
    env: relaySettings(port, database_url === null ? {} : shared),
    open: () => openStore({ ...settings(), data_dir, database_url, "storage.sqlite.path": null }),
  }
}

const call = async (server: Belfry, method: string, path: string, body?: object) => {
  const given = body && { body: JSON.stringify(body) }
  const answer = await server.request(path, { method, ...given })
  return { status: answer.status, body: (await answer.json()) as { data: { id: string } } }
}

/** Fills a topic beside the servers, and publishes to it. */
async function begin({ homes, env, open }: Stage) {
  const first = await startBelfry({ home: homes[0] ?? "", env })
  const { project_id } = first
  await first.stop()
  const store = await open()
  const { ids } = await audience(
    store,
    { project_id },
    Array.from({ length: sizes.published }, () => ({})),
  )
  await store.close()
  const server = await startBelfry({ home: homes[0] ?? "", env })
  const email = {
    subject: "News",
    html: "<p>{{subscriber.external_id}}</p>",
    from: "me@example.test",
  }
  const asked = { channels: ["email"], content: { email } }
  const made = await call(server, "POST", `/v1/topics/${TOPIC}/publish`, asked)
  expect(made.status).toBe(201)
  return { server, project_id, ids, id: made.body.data.id }
}

/** The members at the end leave, and come back: they were in the audience, and are so no more. */
async function leaveAndJoin(server: Belfry, ids: string[]) {
  const path = `/v1/topics/${TOPIC}/subscribers`
  await call(server, "DELETE", path, { subscriber_ids: ids })
  await call(server, "POST", path, { subscriber_ids: ids.slice(0, ids.length / 2) })
}

const randomWalk = () => Bun.sleep(WALK_MS.least + Math.random() * (WALK_MS.most - WALK_MS.least))

async function survive(to: Stage, relay: ReturnType<typeof countingRelay>) {
  const { server, project_id, ids, id } = await begin(to)
  const gone = ids.slice(-RESTLESS)
  const deaf = ids.slice(-2 * RESTLESS, -RESTLESS)
  const running = [server]
  try {
    const started = async () => (await published(server, id)).status !== "queued"
    await until("the start", started)
    await leaveAndJoin(server, gone)
    for (let kills = 0; kills < sizes.publish_kills; kills++) {
      await randomWalk()
      for (const one of running.splice(0)) {
        one.kill("SIGKILL")
        await one.exited
        if (to.homes.length > 1) await randomWalk() // the other node goes on alone
      }
      if (kills === 0) await change(to, (store) => block(store, deaf))
      if (kills === 1) await change(to, (store) => freeze(store, project_id, true))
      if (kills === 2) await change(to, (store) => freeze(store, project_id, false))
      for (const home of to.homes) running.push(await startBelfry({ home, env: to.env }))
    }
    const [last] = running
    if (!last) throw new Error("no server runs")
    const completed = async () => (await published(last, id)).status === "completed"
    await until("the publish", completed, 300_000)
    await drained(last, 600_000)
    const { channels, audience: planned } = await published(last, id)
    for (const one of running.splice(0)) await one.stop()
    await change(to, (store) => judge(store, { id, project_id, gone, deaf, ids }, channels.email))
    expect(planned).toBe(sizes.published)
    expect(relay.counts().size).toBe(channels.email.sent)
  } finally {
    for (const one of running) one.kill("SIGKILL")
    for (const home of to.homes) rmSync(home, { recursive: true, force: true })
  }
}

async function published(server: Belfry, id: string): Promise<Publish> {
  const { body } = await call(server, "GET", `/v1/topics/${TOPIC}/publishes/${id}`)
  return body.data as unknown as Publish
}

interface Publish {
  status: string
  audience: number
  channels: { email: { sent: number; skipped: { preference: number }; failed: number } }
}

async function change({ open }: Stage, work: (store: Store) => Promise<unknown>) {
  const store = await open()
  await work(store)
  await store.close()
}

const block = (store: Store, ids: string[]) =>
  store.tx(async (tx) => {
    for (const id of ids)
      await tx.update(subscribers).set({ status: "blocked" }).where(eq(subscribers.id, id))
  })

const freeze = (store: Store, project_id: string, is_frozen: boolean) =>
  store.tx(async (tx) => {
    const [project] = await tx.select().from(projects).where(eq(projects.id, project_id))
    const sending_status = is_frozen ? ("frozen" as const) : ("active" as const)
    const ours = eq(accounts.id, project?.account_id ?? "")
    await tx.update(accounts).set({ sending_status }).where(ours)
  })

interface Expected {
  id: string
  project_id: string
  gone: string[]
  deaf: string[]
  ids: string[]
}

/** Nobody twice, nobody that stayed left out, and the counts are what the rows say. */
async function judge(
  store: Store,
  { id, project_id, gone, deaf, ids }: Expected,
  told: Publish["channels"]["email"],
) {
  const ours = and(eq(messages.project_id, project_id), eq(messages.fan_out_id, id))
  const rows = await store.read
    .select({ subscriber_id: messages.subscriber_id, all: count() })
    .from(messages)
    .where(and(ours, isNotNull(messages.fan_out_id)))
    .groupBy(messages.subscriber_id)
  expect(rows.filter(({ all }) => Number(all) > 1)).toEqual([])
  const reached = new Set(rows.map((row) => row.subscriber_id))
  const restless = new Set([...gone, ...deaf])
  expect(ids.filter((one) => !restless.has(one) && !reached.has(one))).toEqual([])
  expect(told.sent).toBe(reached.size)
  expect(told.sent + told.skipped.preference).toBe(ids.length)
  const [row] = await store.read.select().from(fanOuts).where(eq(fanOuts.id, id))
  expect(await record({ store }, id)).toMatchObject({
    status: "completed",
    audience: row?.audience,
  })
}

describe("a publish whose servers die", () => {
  test(`on SQLite ${sizes.publish_kills} times: nobody is written to twice, nobody is left out`, async () => {
    using relay = countingRelay()
    await survive(stage(null, relay.port), relay)
  }, 1_800_000)

  const has_postgres = !noPostgres()
  if (!has_postgres) note("a publish on two nodes: start the tests by `bun run test`")

  test.skipIf(!has_postgres)(
    "on two nodes of one Postgres, killed in turn",
    async () => {
      await using database = await freshDatabase()
      using relay = countingRelay()
      await survive(stage(database.url, relay.port), relay)
    },
    1_800_000,
  )
})
