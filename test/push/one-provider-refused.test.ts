import { expect, test } from "bun:test"
import { LOCAL } from "../../src/audit-log/audit-log"
import { channelTable } from "../../src/channels"
import { sleep } from "../../src/core/time"
import { DeviceFates } from "../../src/devices/device-fates"
import { PUSH_PROVIDERS, type PushProvider } from "../../src/devices/tables"
import { heldFor, providerHold } from "../../src/jobs/holds"
import { OVER } from "../../src/jobs/work-item"
import { factsOf } from "../../src/messages/explanation"
import { asTheyStand } from "../../src/messages/message-list"
import { accept } from "../../src/messages/pipeline"
import { wakeStranded } from "../../src/messages/provider-jobs"
import { messages } from "../../src/messages/tables"
import * as configs from "../../src/providers/configs"
import { Failover } from "../../src/providers/failover"
import { resume } from "../../src/providers/health"
import { FAULTS, type ProviderDescriptor } from "../../src/providers/provider"
import { routing } from "../../src/providers/routing"
import { pushChannel } from "../../src/push/channel"
import { type OutgoingPush, pushOutcome, pushSchedule } from "../../src/push/providers/provider"
import { openWork } from "../../src/queue/queue"
import { movableClock } from "../harness/clock"
import { quietLog } from "../harness/quiet"
import { testService } from "../harness/service"
import { engine } from "../harness/store"
import { WorkLoops, workOf } from "../harness/work-loops"
import { addDevice, pushLetter } from "./pushes"

quietLog()
const clock = movableClock()

const until = async (isSo: () => Promise<boolean> | boolean) => {
  while (!(await isSo())) await sleep(10)
}

const WORDS = "InvalidProviderToken"

/** A project with all three providers, of which some refuse our credentials. */
async function threeProviders() {
  const refusing = new Set<PushProvider>()
  const asked: PushProvider[] = []
  const table = PUSH_PROVIDERS.map(
    (name): ProviderDescriptor<object, unknown, OutgoingPush> => ({
      ...{ name, channel: "push", about: name, reports: "", credentials: {} },
      open: () => ({
        ...{ name, schedule: pushSchedule, proves_login: false, close: async () => {} },
        async send(push) {
          asked.push(name)
          const meaning = refusing.has(name) ? "credentials" : "sent"
          return pushOutcome(name, push, { meaning, said: refusing.has(name) ? WORDS : null })
        },
      }),
    }),
  )
  const service = await testService({ providers: { table: table as ProviderDescriptor[] } })
  const { store, parts } = service
  const { account_id, project_id } = await service.project()
  const maker = { secrets: parts.secrets, by: LOCAL, table: table as ProviderDescriptor[] }
  for (const provider of PUSH_PROVIDERS) {
    const wanted = { provider, name: provider, priority: 1, credentials: {}, settings: {} }
    const kind = "push_provider" as const
    const owner = { account_id, project_id }
    await store.tx((tx) => configs.set(tx, owner, { kind, ...wanted }, maker))
  }
  const kind = "push_provider" as const
  const { open_providers, secrets } = parts
  const provider = new Failover<OutgoingPush>({
    ...{ store, kind, providers: open_providers, breaking: FAULTS },
  })
  const fates = new DeviceFates(store)
  const channels = channelTable({
    ...parts,
    provider: {} as never,
    sandbox: undefined,
    concurrency: 1,
  })
  channels.push = pushChannel({ store, secrets, provider, fates, concurrency: 1 })
  const loop = new WorkLoops({
    ...{ store, work: workOf(parts, channels, parts), lease_ms: 30_000 },
    ...{ concurrency: 1, alone: engine === "sqlite" },
  })
  const rows = () => store.read.select().from(messages).orderBy(messages.id)
  return {
    ...{ store, project_id, refusing, asked, rows },
    async push(
      service_name: PushProvider,
      number = 1,
      said: Parameters<typeof pushLetter>[2] = {},
    ) {
      const device = await addDevice(store, project_id, { provider: service_name })
      const letters = Array.from({ length: number }, () => pushLetter(device, { account_id }, said))
      await store.tx((tx) => accept(tx, letters))
      loop.wake()
    },
    /** By what they are: a status, and `held` in its place. */
    async count() {
      const found = { held: 0, sent: 0, queued: 0 }
      for (const row of await rows()) {
        if (row.owner !== null && heldFor(row.owner)) found.held++
        else found[row.status as "sent" | "queued"]++
      }
      return found
    },
    start: () => loop.start(),
    async [Symbol.asyncDispose]() {
      await loop.stop(5_000)
      await provider.close()
      await service[Symbol.asyncDispose]()
    },
  }
}

test("a service that refuses our credentials holds its own messages, and the others go on", async () => {
  await using it = await threeProviders()
  const { store, project_id, refusing, asked } = it
  refusing.add("apns")
  await it.push("apns", 3)
  await it.start()
  await until(async () => (await it.count()).held === 3)
  await it.push("fcm", 2)
  await it.push("webpush", 2)
  await until(async () => (await it.count()).sent === 4)
  expect(asked.filter((name) => name === "apns")).toHaveLength(1)

  const by = providerHold(project_id, "push", "apns")
  expect(heldFor(by)).toEqual({ project_id, channel: "push", service: "apns" })
  const held = (await it.rows()).filter(({ owner }) => owner === by)
  const reason = `apns refuses our login: ${WORDS}. Messages wait until it accepts the login.`
  const views = await asTheyStand(store.read, held)
  const [first] = held
  if (!first) throw new Error("nothing is held")
  expect((await factsOf(store.read, first)).refusal).toBe(reason)
  const until_when = views[0]?.next_attempt_at
  expect(Date.parse(until_when ?? "")).toBeGreaterThan(Date.now())
  const waiting = { status: "queued", status_reason: reason, next_attempt_at: until_when }
  expect(views).toMatchObject([waiting, waiting, waiting])
  const { by_state } = (await openWork(store.read, project_id)).work
  expect(by_state).toMatchObject([{ queue: "push", state: "held", reason, count: 3 }])

  clock.advance({ seconds: 61 })
  await until(() => asked.filter((name) => name === "apns").length === 2)
  await until(async () => (await it.count()).held === 3)

  refusing.clear()
  clock.advance({ seconds: 61 })
  await until(async () => (await it.count()).sent === 7)
})

test("new credentials wake what waits for that service, and nothing else", async () => {
  await using it = await threeProviders()
  const { store, project_id, refusing } = it
  refusing.add("apns").add("fcm")
  await it.push("apns", 2)
  await it.push("fcm", 2)
  await it.start()
  await until(async () => (await it.count()).held === 4)
  refusing.delete("apns")
  const [apns] = await routing(store.read, "push_provider", project_id, { service: "apns" })
  if (!apns) throw new Error("there is no configuration")
  await store.tx((tx) => resume(tx, apns))
  await until(async () => (await it.count()).sent === 2)
  expect(await it.count()).toEqual({ held: 2, sent: 2, queued: 0 })
})

test("what waits for a service that refuses our credentials expires when its time to live is over", async () => {
  await using it = await threeProviders()
  const { store, refusing, asked } = it
  refusing.add("apns")
  await it.push("apns", 2, { ttl_seconds: 5 })
  await it.push("apns", 1)
  await it.start()
  await until(async () => (await it.count()).held === 3)
  clock.advance({ seconds: 50 })
  await wakeStranded(store)
  expect(await it.count()).toMatchObject({ held: 3 }) // at first each has a minute
  clock.advance({ seconds: 15 })
  await wakeStranded(store)
  await until(
    async () => (await it.rows()).filter(({ status }) => status === "expired").length === 2,
  )
  const ended = { status: "expired", state: OVER, owner: null, lease_until: null, provider: null }
  expect(await it.rows()).toMatchObject([ended, ended, { status: "queued" }])
  expect(asked.length).toBeWithin(1, 3) // by the first one, and by the one that stays where a probe was due

  clock.advance({ seconds: 61 })
  refusing.clear()
  await until(async () => (await it.count()).sent === 1)
})
