import { asc, eq } from "drizzle-orm"
import { settings } from "../../src/core/config"
import { openSecrets } from "../../src/core/secrets"
import { millis } from "../../src/core/time"
import { READY } from "../../src/jobs/work-item"
import type { Channel } from "../../src/messages/channel"
import * as pipeline from "../../src/messages/pipeline"
import { attempts, messages } from "../../src/messages/tables"
import { openBackups } from "../../src/operations/backup/create-backup"
import type { Outcome } from "../../src/providers/provider"
import { lateBlobs } from "../harness/late-blobs"
import { testProviders } from "../harness/providers"
import { NO_NAMES } from "../harness/service"
import { testStore } from "../harness/store"
import { WorkLoops, workOf } from "../harness/work-loops"
import { letter, openWork, read, story } from "./letters"

type Scripted = Outcome | Error | (() => Promise<Outcome>)

/** A store, and a channel that gives the scripted outcomes in turn, run by the real job loop. */
export async function postOffice(...script: Scripted[]) {
  const base = await testStore()
  const { store } = base
  const attempted: pipeline.Message[] = []
  const channel: Channel = {
    async deliver(message) {
      attempted.push(message)
      const next = script.shift() ?? new Error("no outcome left")
      if (next instanceof Error) throw next
      return typeof next === "function" ? next() : next
    },
  }
  const channels = { email: channel, push: channel, sms: channel, in_app: channel }
  const blobs = lateBlobs(`${base.folder}/blobs`)
  const rules = { sending_domains: new Set<string>() }
  const domains = { store, ...NO_NAMES }
  const secrets = openSecrets({ data_dir: base.folder, master_key: null })
  const open_providers = testProviders(secrets)
  const backups = openBackups({ settings: { ...settings(), data_dir: base.folder }, secrets })
  const own = {
    store,
    secrets,
    backups,
    blobs,
    inbound_blobs: blobs,
    domains,
    rules,
    open_providers,
    planners: {},
    auth: {} as never, // nobody signs in
  }
  const work = workOf(own, channels, {
    mail: { send: async () => undefined },
    link_base: () => "http://belfry.test",
  })

  return {
    ...base,
    channels,
    work,
    /** What the channel was handed, attempt by attempt. */
    attempted,
    async accept(message = letter()) {
      await store.tx((tx) => pipeline.accept(tx, [message]))
      return message.id
    },
    read: (id: string) => read(store.read, id),
    story: (id: string) => story(store.read, id),
    attempts: (id: string) =>
      store.read
        .select()
        .from(attempts)
        .where(eq(attempts.message_id, id))
        .orderBy(asc(attempts.attempt)),
    /** The messages as work. */
    jobs: () => openWork(store.read),
    /** Runs what is due now, to its end, and no more. */
    async runDue() {
      const before = attempted.length
      const options = { concurrency: 5, lease_ms: 30_000, alone: false }
      const loop = new WorkLoops({ store, work, ...options })
      const due = await dueNow()
      if (due === 0) return 0
      await loop.start()
      while (attempted.length < before + due) await Bun.sleep(1)
      await loop.stop(20_000)
      return due
    },
  }

  async function dueNow() {
    const rows = await store.read.select().from(messages).where(eq(messages.state, READY))
    return rows.filter(({ run_at }) => Date.parse(run_at) <= millis()).length
  }
}

export type PostOffice = Awaited<ReturnType<typeof postOffice>>
