import { asc, eq } from "drizzle-orm"
import { type Settings, settings } from "../../src/core/config"
import { newId } from "../../src/core/ids"
import { openSecrets } from "../../src/core/secrets"
import { now, sleep } from "../../src/core/time"
import { openWorkers } from "../../src/core/workers"
import { emitAll, type NewEvent } from "../../src/events/emit"
import { newSecret } from "../../src/lib/signature"
import type { Store } from "../../src/store/store"
import { openWebhooks } from "../../src/webhooks/open-webhooks"
import { sealHeaders, secretContext } from "../../src/webhooks/receiver"
import { deliveries, type WebhookRow, webhooks } from "../../src/webhooks/tables"
import { addProject } from "./project-rows"
import { testStore } from "./store"

export type DeliveryRow = typeof deliveries.$inferSelect

export interface EndpointOptions extends Partial<Omit<WebhookRow, "id" | "secret">> {
  url: string
  /** Plain; a fresh one without it. */
  secret?: string
  /** Plain as well. */
  previous?: string
}

/** A project on an empty store, whose endpoints are on the loopback, and what it takes to deliver. */
export async function testHooks(changes: Partial<Settings> = {}) {
  const base = await testStore()
  const { store, folder } = base
  const secrets = openSecrets({ data_dir: folder, master_key: null })
  const workers = openWorkers({ size: 1 })
  const chosen = {
    ...settings(),
    "webhooks.require_https": false,
    "webhooks.allow_private": ["127.0.0.0/8"],
    ...changes,
  }
  const { account_id, project_id } = await addProject(store)
  const stops: (() => Promise<void>)[] = []

  const open = (on: Store = store, isPaused = () => false) =>
    openWebhooks({ store: on, secrets, workers, settings: chosen, isPaused })
  const parts = { store, workers, ...open().parts }

  return {
    ...base,
    parts,
    secrets,
    workers,
    account_id,
    project_id,
    /** Delivers from now on; several of them are several nodes. On the same or another store. */
    async deliver(on?: Store, isPaused?: () => boolean) {
      const { loop } = open(on, isPaused)
      await loop.start()
      stops.push(() => loop.stop(0))
      return loop
    },
    async endpoint({ secret = newSecret(), previous, ...row }: EndpointOptions) {
      const id = newId()
      const seal = (text: string) => secrets.seal(text, secretContext(id))
      const whole: WebhookRow = {
        ...blank,
        created_at: now(),
        updated_at: now(),
        ...row,
        ...sealHeaders(secrets, id, row.headers ?? {}),
        id,
        account_id,
        project_id: row.project_id ?? project_id,
        secret: seal(secret),
        previous_secret: previous === undefined ? null : seal(previous),
      }
      await store.tx((tx) => tx.insert(webhooks).values(whole))
      return { ...whole, plain: secret }
    },
    /** So many events, each in a transaction of its own unless `together`. Their ids. */
    async emit(count: number, event: Partial<NewEvent> = {}): Promise<string[]> {
      const list = Array.from({ length: count }, (_, number) => ({
        account_id,
        project_id,
        subject_id: null,
        type: "email.delivered",
        data: { number, subject: "Grüße, \u2028 und „mehr“" },
        ...event,
      }))
      const recorded = await store.tx((tx) => emitAll(tx, list))
      return recorded.map(({ id }) => id)
    },
    webhook: (id: string) => one(store, id),
    deliveries: (webhook_id: string) =>
      store.read
        .select()
        .from(deliveries)
        .where(eq(deliveries.webhook_id, webhook_id))
        .orderBy(asc(deliveries.id)),
    async [Symbol.asyncDispose]() {
      for (const stop of stops) await stop()
      await workers.close()
      await base[Symbol.asyncDispose]()
    },
  }
}

export type TestHooks = Awaited<ReturnType<typeof testHooks>>

const blank = {
  events: ["*"],
  description: null,
  headers: {},
  header_format: "standard" as const,
  retry_policy: { max_attempts: 6, intervals: [60, 300, 1800, 7200, 43_200, 86_400] },
  rate_limit: null,
  filter: null,
  transform: null,
  metadata: {},
  version: "2026-02-01" as const,
  secret_hint: "whsec_…",
  previous_secret_expires_at: null,
  status: "active" as const,
  disabled_reason: null,
  disabled_at: null,
  consecutive_failures: 0,
  last_triggered_at: null,
  last_success_at: null,
  last_failure_at: null,
  unresolved_at: null,
  next_slot_at: null,
}

async function one(store: Store, id: string): Promise<WebhookRow> {
  const [row] = await store.read.select().from(webhooks).where(eq(webhooks.id, id))
  if (!row) throw new Error("no such webhook")
  return row
}

/** Looks again and again, until it is so; the test's own time limit ends a wait in vain. */
export async function until(check: () => Promise<boolean> | boolean): Promise<void> {
  while (!(await check())) await sleep(3)
}
