import { expect, test } from "bun:test"
import { count, sql } from "drizzle-orm"
import { channelTable } from "../../src/channels"
import { settings } from "../../src/core/config"
import { sleep } from "../../src/core/time"
import { smtp } from "../../src/emails/providers/smtp"
import { isHeld } from "../../src/jobs/work-rows"
import { accept } from "../../src/messages/pipeline"
import { wakeStranded } from "../../src/messages/provider-jobs"
import { attempts, messages } from "../../src/messages/tables"
import { openStore } from "../../src/store/open"
import type { Store } from "../../src/store/store"
import { smtpSink } from "../fakes/smtp-sink"
import { movableClock } from "../harness/clock"
import { testFailover, testProviders } from "../harness/providers"
import { quietLog } from "../harness/quiet"
import { type TestService, testService } from "../harness/service"
import { WorkLoops, workOf } from "../harness/work-loops"
import { letter } from "../messages/letters"

quietLog()
const clock = movableClock()

const until = async (isSo: () => Promise<boolean> | boolean) => {
  while (!(await isSo())) await sleep(10)
}

/** Another process, as far as it matters here: a store, providers and a loop of its own. */
async function node({ parts, database_url, folder }: TestService, port: number) {
  const store = await openStore({ ...settings(), data_dir: folder, database_url })
  const access = { host: "127.0.0.1", port, username: "belfry", password: "old" }
  const own = smtp({ ...access, tls: "none" })
  const open_providers = testProviders(parts.secrets, { own })
  const here = { ...parts, store, open_providers }
  const provider = testFailover(store, open_providers)
  const channels = channelTable({ ...here, provider, sandbox: undefined, concurrency: 2 })
  const work = workOf(here, channels, parts)
  const loop = new WorkLoops({ store, work, concurrency: 2, lease_ms: 30_000, alone: false })
  await loop.start()
  return {
    async [Symbol.asyncDispose]() {
      await loop.stop(5_000)
      await provider.close()
      await store.close()
    },
  }
}

async function areHeld({ read }: Store): Promise<boolean> {
  const open = sql`sum(CASE WHEN ${isHeld} THEN 0 ELSE 1 END)`.mapWith(Number)
  const rows = read.select({ open }).from(messages)
  return (await rows)[0]?.open === 0
}

test("two nodes together ask a provider that refuses our login once a minute", async () => {
  let takes_login = false
  using sink = smtpSink({
    EHLO: "250-sink.test\r\n250 AUTH PLAIN",
    AUTH: () => (takes_login ? undefined : "535 5.7.8 wrong"),
  })
  const tries = () => sink.lines.filter((line) => line.startsWith("AUTH")).length
  await using service = await testService()
  const { store } = service
  await store.tx((tx) =>
    accept(
      tx,
      Array.from({ length: 40 }, () => letter()),
    ),
  )
  await using one = await node(service, sink.port)
  await using two = await node(service, sink.port)
  void [one, two]
  await until(() => areHeld(store))
  const began_with = tries()
  expect(began_with).toBeLessThanOrEqual(4) // what was on its way when the first was refused
  for (const minute of [1, 2, 3]) {
    clock.advance({ seconds: 61 })
    await until(() => tries() >= began_with + minute)
    await until(() => areHeld(store))
    expect(tries()).toBe(began_with + minute)
  }
  const [made] = await store.read.select({ n: count() }).from(attempts)
  expect(made?.n).toBe(4)
  takes_login = true
  clock.advance({ seconds: 61 })
  await until(async () => {
    await wakeStranded(store) // once a minute where a server runs: one may be held just as it ends
    return sink.received.length === 40
  })
})
