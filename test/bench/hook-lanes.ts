/**
 * Ours of the webhook benchmarks, in the folder where it runs: real emit, loop and store, without
 * HTTP in front. `burst PORT ENDPOINTS DELIVERIES` prints deliveries a second, each planned before
 * the clock starts and stored when it stops. `steady PORT ENDPOINTS PER_SECOND SECONDS HANGING`
 * emits in an open loop, and prints when each event was on disk.
 */
import { and, eq, sql } from "drizzle-orm"
import { settings } from "../../src/core/config"
import { newId } from "../../src/core/ids"
import { openSecrets } from "../../src/core/secrets"
import { monotonic, now, sleep } from "../../src/core/time"
import { openWorkers } from "../../src/core/workers"
import { emitAll } from "../../src/events/emit"
import { isLeased, isReady } from "../../src/jobs/work-rows"
import { newSecret } from "../../src/lib/signature"
import { openStore } from "../../src/store/open"
import { openWebhooks } from "../../src/webhooks/open-webhooks"
import { secretContext } from "../../src/webhooks/receiver"
import { deliveries, webhooks } from "../../src/webhooks/tables"

const PROJECT = newId()
const EMITTED_TOGETHER = 20

const [way, port, ...numbers] = process.argv.slice(2)
const [first = 0, second = 0, third = 0, fourth = 0] = numbers.map(Number)

const chosen = { ...settings(), "webhooks.allow_private": ["127.0.0.0/8"] }
const store = await openStore(chosen)
const secrets = openSecrets({ data_dir: chosen.data_dir, master_key: null })
const workers = openWorkers({ size: 1 })
const { loop } = openWebhooks({ store, secrets, workers, settings: chosen })

if (way === "burst") await burst(first, second)
else await steady({ endpoints: first, per_second: second, seconds: third, hanging: fourth })
await loop.stop(0)
process.exit(0)

async function burst(endpoints: number, wanted: number) {
  for (let number = 0; number < endpoints; number++) await addEndpoint(`/${number}`, ["email.*"])
  const rounds = Math.ceil(wanted / endpoints / EMITTED_TOGETHER)
  for (let round = 0; round < rounds; round++) {
    await store.tx((tx) =>
      emitAll(
        tx,
        Array.from({ length: EMITTED_TOGETHER }, () => event()),
      ),
    )
  }
  const planned = rounds * EMITTED_TOGETHER * endpoints
  const begun = monotonic()
  await loop.start()
  while (await isAnyOpen()) await sleep(20)
  const seconds = (monotonic() - begun) / 1000
  console.log(JSON.stringify({ per_second: planned / seconds, stored: await successes() }))
}

interface Steady {
  endpoints: number
  per_second: number
  seconds: number
  /** Endpoints that never answer, besides the others. */
  hanging: number
}

/** Each event is for one endpoint, and one more in a hundred for the one that hangs. */
async function steady({ endpoints, per_second, seconds, hanging }: Steady) {
  for (let number = 0; number < endpoints; number++) {
    await addEndpoint(`/${number}`, ["email.*"], { field: "data.lane", op: "eq", value: number })
  }
  if (hanging > 0) await addEndpoint("/hang", ["user.*"])
  await loop.start()
  const committed: [string, number][] = []
  const open: Promise<void>[] = []
  const begun = monotonic()
  const total = per_second * seconds
  for (let number = 0; number < total; ) {
    const due = Math.min(total, Math.floor(((monotonic() - begun) / 1000) * per_second))
    for (; number < due; number++) open.push(emitOne(number))
    await sleep(1)
  }
  await Promise.all(open)
  while (await isAnyOpen("email.delivered")) await sleep(20)
  console.log(JSON.stringify({ committed }))

  async function emitOne(number: number) {
    const lane = number % endpoints
    const list = [event({ lane })]
    if (hanging > 0 && lane === 0) list.push(event({}, "user.created"))
    const [recorded] = await store.tx((tx) => emitAll(tx, list))
    committed.push([`/${lane} ${recorded?.id}`, performance.timeOrigin + performance.now()])
  }
}

function event(more: Record<string, unknown> = {}, type = "email.delivered") {
  return {
    account_id: PROJECT,
    project_id: PROJECT,
    subject_id: null,
    type,
    data: {
      message_id: newId(),
      recipient_email: "user@example.test",
      timestamp: now(),
      bounce_type: null,
      bounce_subtype: null,
      complaint_feedback_type: null,
      tags: ["welcome"],
      metadata: { order: "A-1029" },
      subject: "Your order has shipped",
      ...more,
    },
  }
}

async function addEndpoint(
  path: string,
  types: string[],
  filter: Record<string, unknown> | null = null,
) {
  const id = newId()
  await store.tx((tx) =>
    tx.insert(webhooks).values({
      id,
      account_id: PROJECT,
      project_id: PROJECT,
      url: `http://127.0.0.1:${port}${path}`,
      events: types,
      headers: {},
      header_format: "standard",
      retry_policy: { max_attempts: 6, intervals: [60] },
      filter,
      metadata: {},
      version: "2026-02-01",
      secret: secrets.seal(newSecret(), secretContext(id)),
      secret_hint: "…",
      status: "active",
      consecutive_failures: 0,
      created_at: now(),
      updated_at: now(),
    }),
  )
}

/** By the indexes of what is due and what runs: a count would cost more than what is measured. */
async function isAnyOpen(type?: string): Promise<boolean> {
  const ofType = type === undefined ? undefined : eq(deliveries.event_type, type)
  for (const state of [isReady, isLeased]) {
    const rows = store.read.select({ id: deliveries.id }).from(deliveries)
    if ((await rows.where(and(state, ofType)).limit(1)).length > 0) return true
  }
  return false
}

async function successes(): Promise<number> {
  const rows = store.read.select({ count: sql<number>`count(*)` }).from(deliveries)
  const [row] = await rows.where(sql`status = 'success' and last_response_body = 'ok'`)
  return Number(row?.count ?? 0)
}
