import { expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { channelTable } from "../../src/channels"
import { now, sleep } from "../../src/core/time"
import { providerHold } from "../../src/jobs/holds"
import { jobs } from "../../src/jobs/tables"
import { HELD, READY } from "../../src/jobs/work-item"
import { wakeStranded } from "../../src/messages/provider-jobs"
import { messages } from "../../src/messages/tables"
import { providerConfigs } from "../../src/providers/tables"
import { smtpSink } from "../fakes/smtp-sink"
import { movableClock } from "../harness/clock"
import { mail } from "../harness/mail"
import { type Team, team } from "../harness/people"
import { testFailover } from "../harness/providers"
import { quietLog } from "../harness/quiet"
import { type TestService, testService } from "../harness/service"
import { engine } from "../harness/store"
import { WorkLoops, workOf } from "../harness/work-loops"

const logged = quietLog()

/** What the log says of refused credentials of a configuration. */
const warnings = (config_id: string) =>
  logged()
    .filter((line) => line.includes("A provider refuses our login") && line.includes(config_id))
    .map((line) => JSON.parse(line) as Record<string, unknown>)

const clock = movableClock()

const ALL = "/v1/providers/email_provider/config"
const AUTH = "250-sink.test\r\n250-PIPELINING\r\n250 AUTH PLAIN"
const MAILS = 5

const here = ({ account_id, project_id }: Team) => ({
  "x-account-id": account_id,
  "x-project-id": project_id,
})

async function running({ parts, store }: TestService) {
  const provider = testFailover(store, parts.open_providers)
  const channels = channelTable({ ...parts, provider, sandbox: undefined, concurrency: 4 })
  const loop = new WorkLoops({
    store,
    work: workOf(parts, channels, parts),
    concurrency: 4,
    lease_ms: 30_000,
    alone: engine === "sqlite",
  })
  await loop.start()
  return { [Symbol.asyncDispose]: () => loop.stop(5_000) }
}

const until = async (isSo: () => Promise<boolean>) => {
  while (!(await isSo())) await sleep(10)
}

/** A team whose relay knows another password, and some mails on their way. */
async function stuck(service: TestService, port: number) {
  const home = await team(service)
  const credentials = { host: "127.0.0.1", port, username: "belfry", password: "old", tls: "none" }
  const config = { provider: "smtp", credentials }
  const made = await home.owner.post(ALL, config, here(home))
  for (let at = 0; at < MAILS; at++) await home.owner.post("/v1/emails", mail(), here(home))
  const all = () =>
    service.store.read.select().from(messages).where(eq(messages.project_id, home.project_id))
  const waiting = async () =>
    (await all()).every(
      ({ status_reason }) => status_reason?.includes("refuses our login") ?? false,
    )
  const sent = async () => (await all()).every(({ status }) => status === "sent")
  const path = `${ALL}/${made.body.data.id}`
  return { home, all, waiting, sent, credentials, path }
}

test("messages wait unburnt, the admins hear of it once, and new credentials let all go on", async () => {
  const right = btoa("\0belfry\0new")
  using sink = smtpSink({
    EHLO: AUTH,
    AUTH: (line) => (line.includes(right) ? undefined : "535 5.7.8 wrong"),
  })
  await using service = await testService()
  const { home, all, waiting, sent, credentials, path } = await stuck(service, sink.port)
  await using _ = await running(service)
  await until(waiting)
  await until(async () => service.mails.length > 0)
  expect((await all()).every(({ status }) => status === "queued")).toBe(true)
  expect((await all()).map(({ attempt }) => attempt).sort()).toEqual([0, 0, 0, 0, 1])
  const config = await home.owner.get(path, here(home))
  expect(config.body.data).toMatchObject({ status: "error", last_error: "AUTH: 535 5.7.8 wrong" })
  expect(service.mails.map(({ to, kind }) => [to, kind])).toEqual([
    [home.owner.email, "provider_refused"],
  ])
  expect(service.mails[0]?.text).toContain("AUTH: 535 5.7.8 wrong")
  const { project_id } = home
  const why = { level: "warn", provider: "smtp", project_id, reason: "AUTH: 535 5.7.8 wrong" }
  expect(warnings(config.body.data.id)).toMatchObject([why])

  const change = { credentials: { ...credentials, password: "new" } }
  await home.owner.patch(path, change, here(home))
  await until(sent)
  expect(sink.received).toHaveLength(MAILS)
  const attempts: string[] = []
  for (const { id } of await all()) {
    const { body } = await home.owner.get(`/v1/emails/${id}/attempts`, here(home))
    attempts.push(body.data.map(({ outcome }: { outcome: string }) => outcome).join())
    const told = await home.owner.get(`/v1/emails/${id}/events`, here(home))
    const types = told.body.data.events.map(({ type }: { type: string }) => type)
    expect(types).toEqual(["email.queued", "email.sent"]) // and no deferral of the recipient
  }
  expect(attempts.sort()).toEqual(["login_refused,sent", ...Array(MAILS - 1).fill("sent")])
})

test("a probe finds that the provider takes the credentials again", async () => {
  let is_mended = false
  using sink = smtpSink({
    EHLO: AUTH,
    AUTH: () => (is_mended ? undefined : "535 5.7.8 wrong"),
  })
  await using service = await testService()
  const { home, waiting, sent, path } = await stuck(service, sink.port)
  await using _ = await running(service)
  await until(waiting)
  const config_id = path.slice(`${ALL}/`.length)
  const tries = () => sink.lines.filter((line) => line.startsWith("AUTH")).length
  const before = tries()
  clock.advance({ seconds: 61 })
  await until(async () => tries() > before)
  expect((await home.owner.get(path, here(home))).body.data.status).toBe("error")
  await until(waiting)
  // Its end sets the next turn by the clock: one that moved before would put it off beyond the test.
  const probes = () => service.store.read.select().from(jobs).where(eq(jobs.name, "provider.probe"))
  await until(async () =>
    (await probes()).every(({ state, run_at }) => state === READY && run_at > now()),
  )
  is_mended = true
  clock.advance({ seconds: 61 })
  await until(sent)
  expect((await home.owner.get(path, here(home))).body.data.status).toBe("active")
  expect(service.mails).toHaveLength(1)
  expect(warnings(config_id)).toHaveLength(1) // as often as the mail
})

test("what waits is looked at when a provider comes back, and not before, whatever else is changed", async () => {
  using sink = smtpSink({ EHLO: AUTH, AUTH: "535 5.7.8 wrong" })
  await using service = await testService()
  const { home, waiting, path } = await stuck(service, sink.port)
  const { store } = service
  const mails = () => store.read.select().from(messages)
  const all = () => store.read.select().from(jobs)
  const by = providerHold(home.project_id)
  {
    await using _ = await running(service)
    await until(waiting)
    await home.owner.patch(path, { priority: 7 }, here(home))
    await until(async () => !(await all()).some(({ name }) => name === "provider.resumed"))
  }
  expect(await mails()).toMatchObject(
    Array.from({ length: MAILS }, () => ({ state: HELD, owner: by })),
  )
  expect((await mails()).map(({ attempt }) => attempt).sort()).toEqual([0, 0, 0, 0, 1])
  await wakeStranded(store)
  expect((await mails()).every(({ state }) => state === HELD)).toBe(true)

  // A pause that ended just before a message was put under it.
  const works = { status: "active" as const, paused_until: null }
  await store.tx((tx) => tx.update(providerConfigs).set(works))
  await wakeStranded(store)
  expect((await mails()).map(({ state, owner }) => [state, owner])).toEqual(
    Array.from({ length: MAILS }, () => [READY, null]),
  )
})
