import { describe, expect, test } from "bun:test"
import { count, inArray, ne, sql } from "drizzle-orm"
import { channelTable } from "../../src/channels"
import { sleep } from "../../src/core/time"
import { type SmtpOptions, smtp } from "../../src/emails/providers/smtp"
import { heldCount, providerHold } from "../../src/jobs/holds"
import { HELD, OVER } from "../../src/jobs/work-item"
import { isHeld } from "../../src/jobs/work-rows"
import { accept, messageRows } from "../../src/messages/pipeline"
import { attempts, messageRaws, messages } from "../../src/messages/tables"
import { openWork } from "../../src/queue/queue"
import { rawSqlite } from "../../src/store/statements"
import type { Store } from "../../src/store/store"
import { smtpSink } from "../fakes/smtp-sink"
import { movableClock } from "../harness/clock"
import { mail } from "../harness/mail"
import { type Team, team } from "../harness/people"
import { testFailover, testProviders } from "../harness/providers"
import { quietLog } from "../harness/quiet"
import { type TestService, testService } from "../harness/service"
import { sizes } from "../harness/sizes"
import { engine } from "../harness/store"
import { WorkLoops, workOf } from "../harness/work-loops"
import { letter, PROJECT } from "../messages/letters"

const logged = quietLog()
const clock = movableClock()

const ALL = "/v1/providers/email_provider/config"
const WORDS = "AUTH: 535 5.7.8 wrong"

/** Lines of the log of this provider, by what they say. */
const told = (about: string, config_id: string) =>
  logged()
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .filter(({ message }) => String(message).startsWith(`A provider ${about}`))
    .filter((line) => line.config_id === config_id)

const here = ({ account_id, project_id }: Team) => ({
  "x-account-id": account_id,
  "x-project-id": project_id,
})

/** A relay whose login can be broken and mended. */
function relay() {
  const state = { takes_login: false }
  const sink = smtpSink({
    EHLO: "250-sink.test\r\n250-PIPELINING\r\n250 AUTH PLAIN",
    AUTH: () => (state.takes_login ? undefined : "535 5.7.8 wrong"),
  })
  const access = { host: "127.0.0.1", port: sink.port, username: "belfry", password: "old" }
  return Object.assign(state, {
    sink,
    access: { ...access, tls: "none" } satisfies SmtpOptions,
    tries: () => sink.lines.filter((line) => line.startsWith("AUTH")).length,
    [Symbol.dispose]: () => sink[Symbol.dispose](),
  })
}

/** One at a time, so that nobody else is on the way when the first one is refused. */
async function running(
  { parts, store }: TestService,
  { open_providers = parts.open_providers, concurrency = 1 } = {},
) {
  const provider = testFailover(store, open_providers)
  const channels = channelTable({ ...parts, provider, sandbox: undefined, concurrency })
  const loop = new WorkLoops({
    store,
    work: workOf({ ...parts, open_providers }, channels, parts),
    concurrency,
    lease_ms: 30_000,
    alone: engine === "sqlite",
  })
  await loop.start()
  return { [Symbol.asyncDispose]: () => loop.stop(5_000) }
}

const until = async (isSo: () => Promise<boolean> | boolean) => {
  while (!(await isSo())) await sleep(10)
}

/** Whether every message of the instance is in the queue, under a hold. */
async function areHeld({ read }: Store): Promise<boolean> {
  const rows = read
    .select({ n: count(), held: sql`sum(CASE WHEN ${isHeld} THEN 1 ELSE 0 END)`.mapWith(Number) })
    .from(messages)
  const [all] = await rows.where(ne(messages.state, OVER))
  return all !== undefined && all.n > 0 && all.n === all.held
}

const statuses = async ({ read }: Store) =>
  (await read.select({ status: messages.status }).from(messages)).map(({ status }) => status)

const areSent = async (store: Store) => (await statuses(store)).every((one) => one === "sent")

/** Where mail is refused: by the instance's own relay, or by one that the project configured. */
const PLACES = ["instance", "project"] as const

async function begun(service: TestService, access: SmtpOptions, place: (typeof PLACES)[number]) {
  const home = await team(service)
  const body = { provider: "smtp", name: "our relay", credentials: access }
  const made = place === "project" ? await home.owner.post(ALL, body, here(home)) : undefined
  const config_id = (made?.body.data.id as string | undefined) ?? "instance"
  const name = place === "project" ? "smtp (our relay)" : "smtp"
  const send = () => home.owner.post("/v1/emails", mail(), here(home))
  const list = async () => (await home.owner.get("/v1/emails", here(home))).body.data
  return { home, config_id, name, send, list }
}

describe.each(PLACES)("the relay of the %s refuses our login:", (place) => {
  async function opened() {
    const broken = relay()
    const own = smtp(broken.access)
    const service = await testService({ providers: { own } })
    const world = await begun(service, broken.access, place)
    return {
      ...world,
      broken,
      service,
      async [Symbol.asyncDispose]() {
        await own.close()
        await service[Symbol.asyncDispose]()
        broken[Symbol.dispose]()
      },
    }
  }

  test("mail waits, and every record says for whom, why and until when", async () => {
    await using it = await opened()
    const { home, service, config_id, name } = it
    for (let at = 0; at < 5; at++) await it.send()
    await using _ = await running(service)
    await until(() => areHeld(service.store))

    const rows = await it.list()
    const { next_attempt_at } = rows[0]
    expect(Date.parse(next_attempt_at)).toBeGreaterThan(Date.now())
    const reason = `${name} refuses our login: ${WORDS}. Messages wait until it accepts the login.`
    const waiting = { status: "queued", status_reason: reason, next_attempt_at }
    expect(rows).toMatchObject(Array.from({ length: 5 }, () => waiting))
    const one = await home.owner.get(`/v1/emails/${rows[0].id}`, here(home))
    expect(one.body.data).toMatchObject(waiting)

    const queue = await home.owner.get("/v1/queue", here(home))
    expect(queue.body.data.by_state).toMatchObject([
      { queue: "email", state: "held", reason, count: 5, next_attempt_at },
    ])
    const providers = await home.owner.get("/v1/providers", here(home))
    const shown = { id: config_id, provider: "smtp", status: "error", last_error: WORDS }
    expect(providers.body.data).toMatchObject([{ ...shown, next_probe_at: next_attempt_at }])
    expect(providers.body.meta.total).toBe(1)
    expect((await home.owner.get(`${ALL}/${config_id}`, here(home))).body.data).toMatchObject(shown)
    expect(told("refuses our login", config_id)).toMatchObject([{ level: "warn", reason: WORDS }])
  })

  test("one message asks it each minute, and only that one is composed and has attempts", async () => {
    await using it = await opened()
    const { home, service, broken, config_id } = it
    for (let at = 0; at < 5; at++) await it.send()
    await using _ = await running(service)
    await until(() => areHeld(service.store))
    expect(broken.tries()).toBe(1)
    for (const minute of [1, 2]) {
      clock.advance({ seconds: 61 })
      await until(() => broken.tries() === 1 + minute)
      await until(() => areHeld(service.store))
    }
    const rows = await it.list()
    expect(rows.map((row: { attempts: number }) => row.attempts).sort()).toEqual([0, 0, 0, 0, 3])
    const [composed] = await service.store.read.select({ n: count() }).from(messageRaws)
    expect(composed?.n).toBe(1)
    const asking = rows.find((row: { attempts: number }) => row.attempts === 3)
    const tries = await home.owner.get(`/v1/emails/${asking.id}/attempts`, here(home))
    const refused = { outcome: "login_refused", smtp_code: 535, response: "535 5.7.8 wrong" }
    expect(tries.body.data).toMatchObject([1, 2, 3].map((attempt) => ({ attempt, ...refused })))
    const events = await home.owner.get(`/v1/emails/${asking.id}/events`, here(home))
    const types = events.body.data.events.map(({ type }: { type: string }) => type)
    expect(types).toEqual(["email.queued"]) // nobody is told of a deferral
    expect(told("still refuses our login", config_id)).toMatchObject(
      [1, 2].map(() => ({ level: "warn", reason: WORDS, since: expect.any(String) })),
    )

    broken.takes_login = true
    clock.advance({ seconds: 61 })
    await until(() => areSent(service.store))
    expect(broken.sink.received).toHaveLength(5)
    expect(told("accepts our login again", config_id)).toHaveLength(1)
    expect((await home.owner.get("/v1/queue", here(home))).body.data.by_state).toEqual([])
  })

  test("a test of the provider that succeeds lets everything go on at once", async () => {
    await using it = await opened()
    const { home, service, broken, config_id } = it
    for (let at = 0; at < 3; at++) await it.send()
    await using _ = await running(service)
    await until(() => areHeld(service.store))
    const path = `${ALL}/${config_id}/test`
    const refused = await home.owner.post(path, {}, here(home))
    expect([refused.status, refused.body.error.code]).toEqual([502, "provider_error"])
    expect(await areHeld(service.store)).toBe(true)

    broken.takes_login = true
    expect((await home.owner.post(path, {}, here(home))).body.data.ok).toBe(true)
    await until(() => areSent(service.store))
    const shown = (await home.owner.get("/v1/providers", here(home))).body.data
    expect(shown.filter((row: { status: string }) => row.status !== "active")).toEqual([])
  })

  test("a message that waits can be cancelled, and another one asks in its place", async () => {
    await using it = await opened()
    const { home, service, broken } = it
    for (let at = 0; at < 3; at++) await it.send()
    await using _ = await running(service)
    await until(() => areHeld(service.store))
    const asked = (await it.list()).find((row: { attempts: number }) => row.attempts === 1)
    const cancelled = await home.owner.post(`/v1/emails/${asked.id}/cancel`, {}, here(home))
    expect(cancelled.body.data.status).toBe("failed")
    clock.advance({ seconds: 61 })
    await until(() => broken.tries() === 2)
    await until(() => areHeld(service.store))
    const counts = (await it.list()).map((row: { attempts: number }) => row.attempts)
    expect(counts.sort()).toEqual([0, 1, 1])
  })
})

test("refused logins move the schedule of the recipient's server no further", async () => {
  using broken = relay()
  const own = smtp(broken.access)
  await using service = await testService({ providers: { own } })
  const it = await begun(service, broken.access, "instance")
  await it.send()
  {
    await using _ = await running(service)
    for (let tries = 1; tries <= 3; tries++) {
      await until(() => broken.tries() === tries)
      await until(() => areHeld(service.store))
      clock.advance({ seconds: 61 })
    }
  }
  const asked: number[] = []
  const schedule = (attempt: number) => {
    asked.push(attempt)
    return 3600
  }
  const deferring = { ...own, schedule, send: async () => ({ ...DEFERRED, schedule }) }
  await using _ = await running(service, {
    open_providers: testProviders(service.parts.secrets, { own: deferring }),
  })
  await until(() => asked.length > 0)
  expect(asked).toEqual([1])
})

const DEFERRED = {
  address: "ann@example.test",
  status: "retry" as const,
  reason: "450 4.2.0 grey",
  bounce_subtype: null,
  code: null,
  reply: { smtp_code: 450, enhanced_code: "4.2.0", response: "450 grey", mx: null, tls: null },
  provider: "smtp",
  others: [],
  transcript: [],
}

test(`${sizes.waiting} messages that wait cost no write each: a minute changes a handful of rows`, async () => {
  const MANY = sizes.waiting
  using broken = relay()
  const own = smtp(broken.access)
  await using service = await testService({ providers: { own } })
  const { store } = service
  await store.tx((tx) => accept(tx, [letter()]))
  await using _ = await running(service)
  await until(() => areHeld(store))
  for (let at = 1; at < MANY; at += 500) await addHeld(store, Math.min(500, MANY - at))
  expect(await heldCount(store.read, messageRows, providerHold(PROJECT))).toEqual([{ n: MANY }])
  const {
    work: { by_state },
  } = await openWork(store.read, PROJECT)
  expect(by_state).toMatchObject([{ queue: "email", state: "held", count: MANY }])

  const began_with = broken.tries()
  const before = { changes: await changes(store), rows: await snapshot(store) }
  for (const minute of [1, 2, 3]) {
    clock.advance({ seconds: 61 })
    await until(() => broken.tries() === began_with + minute)
    await until(() => areHeld(store))
  }
  const after = { changes: await changes(store), rows: await snapshot(store) }
  const changed = [...after.rows].filter(([id, row]) => before.rows.get(id) !== row)
  expect(changed).toHaveLength(1) // the row of the one message that asks
  // Some twenty for each probe: claims, the attempt, the next probe, and no more with more messages.
  if (engine === "sqlite") expect(after.changes - before.changes).toBeLessThan(100)
  const [tries] = await store.read.select({ n: count() }).from(attempts)
  expect(tries?.n).toBe(4)
})

/** Messages as they are when each has been looked at once, and was put under the hold. */
const addHeld = ({ tx }: Store, number: number) =>
  tx(async (open) => {
    const list = Array.from({ length: number }, () => letter())
    await accept(open, list)
    const ids = list.map(({ id }) => id)
    const state = { state: HELD, owner: providerHold(PROJECT) }
    const status_reason = `smtp refuses our login: ${WORDS}. Messages wait until it accepts the login.`
    await open
      .update(messages)
      .set({ ...state, status_reason })
      .where(inArray(messages.id, ids))
  })

/** Every message, as text. */
async function snapshot({ read }: Store): Promise<Map<string, string>> {
  const mails = await read.select().from(messages)
  return new Map(mails.map((row) => [row.id, JSON.stringify(row)]))
}

/** Rows that the writer changed since it was opened; SQLite counts them. */
const changes = (store: Store): Promise<number> =>
  engine === "sqlite"
    ? store.tx(async (tx) => {
        const row = rawSqlite.get(tx)?.query("SELECT total_changes() AS n").get()
        return (row as { n: number }).n
      })
    : Promise.resolve(0)
