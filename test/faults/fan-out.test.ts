import { describe, expect, test } from "bun:test"
import { rmSync } from "node:fs"
import { and, count, eq, isNotNull, ne } from "drizzle-orm"
import { fanOuts } from "../../src/fan-out/tables"
import { accounts, projects } from "../../src/identity/tables"
import { mailboxMails } from "../../src/mailbox/tables"
import { messages } from "../../src/messages/tables"
import { brokenIn } from "../../src/operations/invariants"
import type { Store } from "../../src/store/store"
import { subscribers } from "../../src/subscribers/tables"
import { countingRelay } from "../fakes/counting-relay"
import { audience, record } from "../fan-out/audiences"
import { type Belfry, startBelfry } from "../harness/binary"
import { note } from "../harness/peers"
import { freshDatabase, noPostgres } from "../harness/postgres"
import { sizes } from "../harness/sizes"
import { drained, type Server, until } from "../scenarios/mails"
import { call, type Stage, stage } from "./publish-stage"

const TOPIC = "releases"
/** Members of the topic that leave it, and others that block everything, while the walk goes on. */
const RESTLESS = 40
/** For the sizes of a release. */
const LONG_MS = 1_800_000
const WALK_MS = { least: 50, most: 350 }

interface Wish {
  channels: ("email" | "sms")[]
  members: number
  /** So that the walk takes some seconds, on a fast machine, too: the servers die while it goes on. */
  sends_per_second: number
}

const ALL: Wish = {
  channels: ["email"],
  members: sizes.published,
  sends_per_second: sizes.published / 4,
}

/** Fills a topic beside the servers, and publishes to it. */
async function begin({ homes, env, open }: Stage, { channels, members, sends_per_second }: Wish) {
  const first = await startBelfry({ home: homes[0] ?? "", env })
  const { project_id } = first
  await first.stop()
  const store = await open()
  const { ids } = await audience(
    store,
    { project_id },
    Array.from({ length: members }, (_, nth) => ({ phone: `+1415556${10_000 + nth}` })),
  )
  await limit(store, project_id, { sends_per_second })
  await store.close()
  const server = await startBelfry({ home: homes[0] ?? "", env })
  const email = {
    subject: "News",
    html: "<p>{{subscriber.external_id}}</p>",
    from: "me@example.test",
  }
  const sms = { body: "News for {{subscriber.external_id}}" }
  const content = channels.includes("sms") ? { email, sms } : { email }
  const asked = { channels, content }
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

async function survive(
  to: Stage,
  relay: ReturnType<typeof countingRelay>,
  wish: Wish = ALL,
  most_kills = sizes.publish_kills,
) {
  const { server, project_id, ids, id } = await begin(to, wish)
  const gone = ids.slice(-RESTLESS)
  const deaf = ids.slice(-2 * RESTLESS, -RESTLESS)
  const running = [server]
  try {
    const started = async () => (await published(server, id)).status !== "queued"
    await until("the start", started)
    await leaveAndJoin(server, gone)
    for (let kills = 0; kills < most_kills; kills++) {
      await randomWalk()
      for (const one of running.splice(0)) {
        one.kill("SIGKILL")
        await one.exited
        if (to.homes.length > 1) await randomWalk() // the other node goes on alone
      }
      if (kills === 0) await change(to, (store) => block(store, deaf))
      if (kills === 1 && most_kills > 2)
        await change(to, (store) => freeze(store, project_id, true))
      if (kills === 2) await change(to, (store) => freeze(store, project_id, false))
      for (const home of to.homes) running.push(await startBelfry({ home, env: to.env }))
    }
    const [last] = running
    if (!last) throw new Error("no server runs")
    const completed = async () => (await published(last, id)).status === "completed"
    await until("the publish", completed, LONG_MS)
    await drained(last, LONG_MS)
    if (wish.channels.includes("sms")) await until("the reports", () => areReported(last), LONG_MS)
    const { channels, audience: planned } = await published(last, id)
    for (const one of running.splice(0)) await one.stop()
    await change(to, async (store) => {
      for (const channel of wish.channels) {
        const expected = { id, project_id, gone, deaf, ids, channel }
        await judge(store, expected, channels[channel])
      }
      if (wish.channels.includes("sms"))
        await judgeTexts(store, project_id, channels.sms.sent - channels.sms.failed)
    })
    expect(planned).toBe(wish.members)
    expect(relay.counts().size).toBe(channels.email.sent - channels.email.failed)
  } finally {
    for (const one of running) one.kill("SIGKILL")
    for (const home of to.homes) rmSync(home, { recursive: true, force: true })
  }
}

/** Whether each text has its report. */
async function areReported(server: Server): Promise<boolean> {
  for (const status of ["queued", "sending", "sent"]) {
    const answer = await server.request(`/v1/sms?status=${status}&limit=1`)
    if (((await answer.json()) as { data: unknown[] }).data.length > 0) return false
  }
  return true
}

/** Attempts that may have been under way at a kill: their texts stand in the mailbox twice. */
const IN_FLIGHT = 256

/** The rows of these were written beside the servers. */
const UNCOUNTED = /^The counter (subscribers|topics) /

/** Each number got one text, and a second time only what was in flight at a kill. The totals are those of the rows. */
async function judgeTexts(store: Store, project_id: string, sent: number) {
  const { email_id, to_address } = mailboxMails
  const caught = await store.read
    .select({ email_id, to_address, all: count() })
    .from(mailboxMails)
    .where(eq(mailboxMails.project_id, project_id))
    .groupBy(email_id, to_address)
  expect(caught.length).toBe(sent)
  expect(new Set(caught.map((one) => one.to_address)).size).toBe(sent)
  const again = caught.reduce((sum, one) => sum + Number(one.all) - 1, 0)
  expect(again).toBeLessThanOrEqual(IN_FLIGHT)
  const look = { db: store.read, pause: async () => {}, since: null, overdue_before: null }
  const broken = await Array.fromAsync(brokenIn(look, { kind: "project", id: project_id }))
  expect(broken.filter(({ what }) => !UNCOUNTED.test(what))).toEqual([])
}

/** A slow machine, too, cancels it long before the end of the walk. */
const SLOW = { ...ALL, sends_per_second: sizes.published / 25 }

/** The servers die while the publish goes on, it is cancelled, and they die again. */
async function cancelAmidKills(to: Stage, relay: ReturnType<typeof countingRelay>) {
  const { server, project_id, id } = await begin(to, SLOW)
  const running = [server]
  const killAll = async () => {
    for (const one of running.splice(0)) {
      one.kill("SIGKILL")
      await one.exited
    }
  }
  const startAll = async () => {
    for (const home of to.homes) running.push(await startBelfry({ home, env: to.env }))
    const [first] = running
    if (!first) throw new Error("no server runs")
    return first
  }
  try {
    await until("some messages", async () => relay.receipts.length > 0)
    await killAll()
    const again = await startAll()
    const before = relay.receipts.length
    await until("more messages", async () => relay.receipts.length > before)
    const path = `/v1/topics/${TOPIC}/publishes/${id}/cancel`
    expect((await call(again, "POST", path)).status).toBe(200)
    const told = await published(again, id)
    await killAll()
    const taken = relay.receipts.length
    const last = await startAll()
    await drained(last, LONG_MS)
    const ended = await published(last, id)
    expect(ended).toMatchObject({
      status: "cancelled",
      channels: { email: { sent: told.channels.email.sent } },
    })
    expect(ended.channels.email.sent).toBeLessThan(sizes.published)
    for (const one of running.splice(0)) await one.stop()
    expect(relay.receipts.length).toBe(taken) // nothing of it leaves after the cancel
    await change(to, (store) => validateCancelled(store, { id, project_id }, ended, relay))
  } finally {
    for (const one of running) one.kill("SIGKILL")
    for (const home of to.homes) rmSync(home, { recursive: true, force: true })
  }
}

/** Nobody twice, and each message either left or ended as cancelled, as the counts say. */
async function validateCancelled(
  store: Store,
  { id, project_id }: Pick<Expected, "id" | "project_id">,
  { channels: { email } }: Publish,
  relay: ReturnType<typeof countingRelay>,
) {
  const ours = and(eq(messages.project_id, project_id), eq(messages.fan_out_id, id))
  const rows = await store.read.select().from(messages).where(ours)
  expect(rows.length).toBe(email.sent)
  expect(new Set(rows.map((row) => row.subscriber_id)).size).toBe(rows.length)
  const ends = Map.groupBy(rows, ({ status, status_reason }) => `${status} ${status_reason ?? ""}`)
  const [left, stopped] = [ends.get("sent ") ?? [], ends.get("failed cancelled") ?? []]
  expect(left.length + stopped.length).toBe(rows.length)
  expect(stopped.length).toBe(email.failed)
  expect(left.length).toBeGreaterThan(0)
  const taken = relay.counts()
  expect(left.filter(({ rfc_message_id }) => !taken.has(rfc_message_id ?? ""))).toEqual([])
}

async function published(server: Belfry, id: string): Promise<Publish> {
  const { body } = await call(server, "GET", `/v1/topics/${TOPIC}/publishes/${id}`)
  return body.data as unknown as Publish
}

interface ChannelCounts {
  sent: number
  skipped: { preference: number }
  failed: number
}

interface Publish {
  status: string
  audience: number
  channels: { email: ChannelCounts; sms: ChannelCounts }
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

const setAccount = (
  store: Store,
  project_id: string,
  change: Partial<typeof accounts.$inferInsert>,
) =>
  store.tx(async (tx) => {
    const [project] = await tx.select().from(projects).where(eq(projects.id, project_id))
    const ours = eq(accounts.id, project?.account_id ?? "")
    await tx.update(accounts).set(change).where(ours)
  })

const freeze = (store: Store, project_id: string, is_frozen: boolean) =>
  setAccount(store, project_id, { sending_status: is_frozen ? "frozen" : "active" })

const limit = (store: Store, project_id: string, limits: Record<string, number>) =>
  setAccount(store, project_id, { limits })

interface Expected {
  id: string
  project_id: string
  gone: string[]
  deaf: string[]
  ids: string[]
  channel: "email" | "sms"
}

/** What each message has become when nothing is left to do. */
const ENDS = { email: "sent", sms: "delivered" } as const

/** Nobody twice, nobody that stayed left out, and the counts are what the rows say. */
async function judge(
  store: Store,
  { id, project_id, gone, deaf, ids, channel }: Expected,
  told: ChannelCounts,
) {
  const of_publish = and(eq(messages.project_id, project_id), eq(messages.fan_out_id, id))
  const ours = and(of_publish, eq(messages.channel, channel))
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
  const { subscriber_id, status, status_reason: reason } = messages
  const failed = await store.read
    .select({ subscriber_id, status, reason })
    .from(messages)
    .where(and(ours, ne(status, ENDS[channel])))
  // The walk had passed some of the restless before they said no: the send asks them again.
  const wrong = failed.filter((one) => !restless.has(one.subscriber_id ?? ""))
  expect(wrong).toEqual([])
  expect(failed.filter((one) => `${one.status} ${one.reason}` !== "failed preference")).toEqual([])
  expect(told.failed).toBe(failed.length)
  const [row] = await store.read.select().from(fanOuts).where(eq(fanOuts.id, id))
  expect(await record({ store }, id)).toMatchObject({
    status: "completed",
    audience: row?.audience,
  })
}

/** Texts go to the provider that keeps them in the mailbox. */
const BOTH = {
  BELFRY_SMS_PROVIDER: "log",
  BELFRY_MAILBOX_ENABLED: "true",
  BELFRY_MAILBOX_LISTEN: "127.0.0.1:0",
}

const IN_BOTH: Wish = {
  channels: ["email", "sms"],
  members: sizes.published_twice,
  sends_per_second: sizes.published_twice / 2,
}

describe("a publish whose servers die", () => {
  test(
    `on SQLite ${sizes.publish_kills} times: nobody is written to twice, nobody is left out`,
    async () => {
      using relay = countingRelay()
      await survive(stage(null, relay.port), relay)
    },
    LONG_MS,
  )

  const has_postgres = !noPostgres()
  if (!has_postgres) note("a publish on two nodes: start the tests by `bun run test`")

  test.skipIf(!has_postgres || !sizes.on_postgres)(
    "on two nodes of one Postgres, killed in turn",
    async () => {
      await using database = await freshDatabase()
      using relay = countingRelay()
      await survive(stage(database.url, relay.port), relay)
    },
    LONG_MS,
  )

  test(
    `by email and by SMS: each of ${sizes.published_twice} people gets both once`,
    async () => {
      using relay = countingRelay()
      await survive(stage(null, relay.port, BOTH), relay, IN_BOTH, 2)
    },
    LONG_MS,
  )

  test.skipIf(!has_postgres)(
    "by email and by SMS on two nodes of one Postgres",
    async () => {
      await using database = await freshDatabase()
      using relay = countingRelay()
      await survive(stage(database.url, relay.port, BOTH), relay, IN_BOTH, 3)
    },
    LONG_MS,
  )

  test(
    "and is cancelled between two kills: nothing of it leaves any more",
    async () => {
      using relay = countingRelay()
      await cancelAmidKills(stage(null, relay.port), relay)
    },
    LONG_MS,
  )

  test.skipIf(!has_postgres || !sizes.on_postgres)(
    "and is cancelled between two kills of two nodes",
    async () => {
      await using database = await freshDatabase()
      using relay = countingRelay()
      await cancelAmidKills(stage(database.url, relay.port), relay)
    },
    LONG_MS,
  )
})
