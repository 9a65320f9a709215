import { describe, expect, test } from "bun:test"
import { rmSync } from "node:fs"
import { join } from "node:path"
import { and, count, eq } from "drizzle-orm"
import { newId } from "../../src/core/ids"
import { openSecrets } from "../../src/core/secrets"
import { now } from "../../src/core/time"
import { countDevices } from "../../src/devices/device-rows"
import { type DeviceRow, devices } from "../../src/devices/tables"
import { accounts, projects } from "../../src/identity/tables"
import { messages } from "../../src/messages/tables"
import { brokenIn } from "../../src/operations/invariants"
import { ensureWebPush } from "../../src/push/vapid"
import type { Store } from "../../src/store/store"
import { countingRelay } from "../fakes/counting-relay"
import { pushService, subscriber } from "../fakes/push-service"
import { audience } from "../fan-out/audiences"
import { type Belfry, startBelfry } from "../harness/binary"
import { note } from "../harness/peers"
import { freshDatabase, noPostgres } from "../harness/postgres"
import { sizes } from "../harness/sizes"
import { drained, until } from "../scenarios/mails"
import { call, type Stage, stage } from "./publish-stage"

const TOPIC = "releases"
const PEOPLE = sizes.published_pushed
const DEVICES = 2
const LONG_MS = 1_800_000
const WALK_MS = { least: 50, most: 350 }

/** Attempts that may have been under way at a kill. */
const IN_FLIGHT = 256

/** The rows of these were written beside the servers. */
const UNCOUNTED = /^The counter (subscribers|topics) /

const CONTENT = {
  email: { subject: "News", html: "<p>News</p>", from: "me@example.test" },
  push: { title: "News", body: "{{subscriber.external_id}}" },
}

const privately = { BELFRY_PROVIDERS_ALLOW_PRIVATE: "127.0.0.0/8" }

interface Receivers {
  relay: ReturnType<typeof countingRelay>
  service: ReturnType<typeof pushService>
}

/** Each of the people has two browsers, whose endpoints tell them apart. */
async function addDevices(store: Store, project_id: string, base: string) {
  const { keys } = subscriber()
  const at = now()
  for (let person = 0; person < PEOPLE; person++) {
    const rows = Array.from({ length: DEVICES }, (_, nth): DeviceRow => {
      const [id, device_id] = [newId(), `browser-${person}-${nth}`]
      const token = `${base}/${device_id}`
      return {
        ...{ id, project_id, device_id, scope: "project", user_id: `reader-${person}` },
        ...{ platform: "web", provider: "webpush", token, keys, device_name: null, app_id: null },
        token_hash: Bun.SHA256.hash(`webpush:${token}`, "hex"),
        ...{ app_version: null, os_version: null, locale: null, timezone: null },
        ...{ apns_environment: null, status: "active", status_reason: null, failure_count: 0 },
        ...{ metadata: {}, token_at: at, last_active_at: at, last_success_at: null },
        ...{ created_at: at, updated_at: at },
      }
    })
    await store.tx(async (tx) => {
      await tx.insert(devices).values(rows)
      await countDevices(
        tx,
        rows.map((after) => ({ after })),
      )
    })
  }
}

/** A publish by email and push, that takes at least so many seconds. */
async function begin({ homes, env, open }: Stage, { service }: Receivers, seconds: number) {
  const first = await startBelfry({ home: homes[0] ?? "", env })
  const { project_id } = first
  await first.stop()
  const store = await open()
  await audience(
    store,
    { project_id },
    Array.from({ length: PEOPLE }, () => ({})),
  )
  await addDevices(store, project_id, service.url)
  const [project] = await store.read.select().from(projects).where(eq(projects.id, project_id))
  if (!project) throw new Error("there is no project")
  const { account_id } = project
  const key = { data_dir: join(homes[0] ?? "", "belfry"), master_key: masterKeyIn(env) }
  await ensureWebPush(store, openSecrets(key), { account_id, project_id })
  const limits = { sends_per_second: Math.ceil((PEOPLE * (1 + DEVICES)) / seconds) }
  await store.tx((tx) => tx.update(accounts).set({ limits }).where(eq(accounts.id, account_id)))
  await store.close()
  const server = await startBelfry({ home: homes[0] ?? "", env })
  const asked = { channels: ["email", "push"], content: CONTENT }
  const published = await call(server, "POST", `/v1/topics/${TOPIC}/publish`, asked)
  expect(published.status).toBe(201)
  return { server, project_id, id: published.body.data.id }
}

const masterKeyIn = ({ BELFRY_SECURITY_MASTER_KEY: key }: Stage["env"]) => key ?? null

interface ChannelCounts {
  planned: number
  sent: number
  failed: number
}

async function publishOf(server: Belfry, id: string) {
  const { body } = await call(server, "GET", `/v1/topics/${TOPIC}/publishes/${id}`)
  return body.data as unknown as {
    status: string
    channels: Record<"email" | "push", ChannelCounts>
  }
}

async function isPushed(server: Belfry): Promise<boolean> {
  for (const status of ["queued", "sending"]) {
    const { body } = await call(server, "GET", `/v1/push?status=${status}&limit=1`)
    if ((body.data as unknown as unknown[]).length > 0) return false
  }
  return true
}

const randomWalk = () => Bun.sleep(WALK_MS.least + Math.random() * (WALK_MS.most - WALK_MS.least))

/** The servers of a stage: all that run are killed, and started again. */
function servers(to: Stage, first: Belfry) {
  const running = [first]
  return {
    async kill() {
      for (const one of running.splice(0)) {
        one.kill("SIGKILL")
        await one.exited
        if (to.homes.length > 1) await randomWalk() // the other node works on alone
      }
    },
    async start() {
      for (const home of to.homes) running.push(await startBelfry({ home, env: to.env }))
      const [one] = running
      if (!one) throw new Error("no server runs")
      return one
    },
    async stop() {
      for (const one of running.splice(0)) await one.stop()
    },
    [Symbol.dispose]() {
      for (const one of running) one.kill("SIGKILL")
      for (const home of to.homes) rmSync(home, { recursive: true, force: true })
    },
  }
}

async function survive(to: Stage, receivers: Receivers) {
  const { server, project_id, id } = await begin(to, receivers, 4)
  using all = servers(to, server)
  let last = server
  for (let kills = 0; kills < sizes.push_kills; kills++) {
    await randomWalk()
    await all.kill()
    last = await all.start()
  }
  const isOver = async () => (await publishOf(last, id)).status === "completed"
  await until("the publish", isOver, LONG_MS)
  await drained(last, LONG_MS)
  await until("the pushes", () => isPushed(last), LONG_MS)
  const { channels } = await publishOf(last, id)
  await all.stop()
  const whole = { planned: PEOPLE, sent: PEOPLE, failed: 0 }
  expect(channels).toMatchObject({ email: whole, push: whole })
  const rows = await judge(to, { project_id, id })
  expect([rows.email.length, rows.push.length]).toEqual([PEOPLE, PEOPLE * DEVICES])
  expect([...rows.email, ...rows.push].filter(({ status }) => status !== "sent")).toEqual([])
  expect(receivers.relay.counts().size).toBe(PEOPLE)
  expect(heardBy(receivers).size).toBe(PEOPLE * DEVICES)
}

/** How often each device heard of it: twice only where an attempt was under way at a kill. */
function heardBy({ service }: Receivers): Map<string, number> {
  const heard = new Map<string, number>()
  for (const { path } of service.requests) heard.set(path, (heard.get(path) ?? 0) + 1)
  const again = [...heard.values()].reduce((sum, times) => sum + times - 1, 0)
  expect(again).toBeLessThanOrEqual(IN_FLIGHT)
  return heard
}

/** One message for each mailbox and device, and totals that are those of the rows. */
async function judge({ open }: Stage, { project_id, id }: { project_id: string; id: string }) {
  const store = await open()
  try {
    const { channel, address, status } = messages
    const ours = and(eq(messages.project_id, project_id), eq(messages.fan_out_id, id))
    const rows = await store.read
      .select({ channel, address, status, all: count() })
      .from(messages)
      .where(ours)
      .groupBy(channel, address, status)
    expect(new Set(rows.map((row) => `${row.channel} ${row.address}`)).size).toBe(rows.length)
    expect(rows.filter(({ all }) => Number(all) > 1)).toEqual([])
    const look = { db: store.read, pause: async () => {}, since: null, overdue_before: null }
    const broken = await Array.fromAsync(brokenIn(look, { kind: "project", id: project_id }))
    expect(broken.filter(({ what }) => !UNCOUNTED.test(what))).toEqual([])
    const of = (name: "email" | "push") => rows.filter((row) => row.channel === name)
    return { email: of("email"), push: of("push") }
  } finally {
    await store.close()
  }
}

/** It is cancelled between two kills: what has not left by then never leaves. */
async function cancelAmidKills(to: Stage, receivers: Receivers) {
  const { server, project_id, id } = await begin(to, receivers, 30)
  using all = servers(to, server)
  const { requests } = receivers.service
  await until("some pushes", async () => requests.length > 0)
  await all.kill()
  const again = await all.start()
  const before = requests.length
  await until("more pushes", async () => requests.length > before)
  const cancelled = await call(again, "POST", `/v1/topics/${TOPIC}/publishes/${id}/cancel`)
  expect(cancelled.status).toBe(200)
  await all.kill()
  const taken = requests.length
  const last = await all.start()
  await drained(last, LONG_MS)
  await until("the pushes", () => isPushed(last), LONG_MS)
  const { status, channels } = await publishOf(last, id)
  await all.stop()
  expect(status).toBe("cancelled")
  expect(requests.length).toBe(taken)
  const { push } = await judge(to, { project_id, id })
  const ended = Map.groupBy(push, (row) => row.status)
  expect([...ended.keys()].sort()).toEqual(["cancelled", "sent"])
  expect(channels.push.failed).toBe(ended.get("cancelled")?.length ?? 0)
  expect(channels.push.sent).toBeLessThan(PEOPLE)
  const heard = heardBy(receivers)
  expect(ended.get("sent")?.filter(({ address }) => !heard.has(`/${address}`))).toEqual([])
}

describe("a publish by email and push whose servers die", () => {
  const fresh = (): Receivers & Disposable => {
    const [relay, service] = [countingRelay(), pushService()]
    return {
      ...{ relay, service },
      [Symbol.dispose]() {
        relay[Symbol.dispose]()
        service[Symbol.dispose]()
      },
    }
  }

  test(
    `${sizes.push_kills} times: every device hears of it, and twice only at a kill`,
    async () => {
      using receivers = fresh()
      await survive(stage(null, receivers.relay.port, privately), receivers)
    },
    LONG_MS,
  )

  test(
    "and is cancelled between two kills: nothing of it leaves any more",
    async () => {
      using receivers = fresh()
      await cancelAmidKills(stage(null, receivers.relay.port, privately), receivers)
    },
    LONG_MS,
  )

  const has_postgres = !noPostgres()
  if (!has_postgres) note("a publish by push on two nodes: start the tests by `bun run test`")

  test.skipIf(!has_postgres)(
    "on two nodes of one Postgres",
    async () => {
      await using database = await freshDatabase()
      using receivers = fresh()
      await survive(stage(database.url, receivers.relay.port, privately), receivers)
    },
    LONG_MS,
  )
})
