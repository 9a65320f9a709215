import { afterEach, beforeEach, expect, test } from "bun:test"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { and, eq } from "drizzle-orm"
import { loadSettings, type Sources } from "../../../src/core/config"
import { openSecrets } from "../../../src/core/secrets"
import { projects } from "../../../src/identity/tables"
import { RESTORE_HOLD } from "../../../src/jobs/work-item"
import { messages } from "../../../src/messages/tables"
import { openArchive } from "../../../src/operations/backup/archive-reader"
import { createBackup } from "../../../src/operations/backup/create-backup"
import { changeHeld } from "../../../src/operations/held-work"
import { type BrokenInvariant, brokenIn } from "../../../src/operations/invariants"
import { restore } from "../../../src/operations/restore/restore"
import { type Running, start } from "../../../src/server"
import type { Store } from "../../../src/store/store"
import { deliveries } from "../../../src/webhooks/tables"
import { ALLOWED_WHILE_HELD } from "../../../src/work"
import { countingRelay } from "../../fakes/counting-relay"
import { type Receiver, receiver } from "../../fakes/receiver"
import { OWN_PORTS, relayedTo } from "../../harness/own-ports"
import { freshDatabase } from "../../harness/postgres"
import { quietLog } from "../../harness/quiet"
import { sizes } from "../../harness/sizes"
import { engine } from "../../harness/store"

quietLog()

const SENDERS = 8
/** Each submission takes so long, so that there is always open work. */
const RELAY_MS = 60
const SILENCE_MS = 1500

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "belfry-copies-"))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

/** A database of its own on the engine of this run; null where the folder holds it. */
async function database() {
  const made = engine === "postgres" ? await freshDatabase() : undefined
  return {
    url: made?.url ?? null,
    [Symbol.asyncDispose]: async () => made?.[Symbol.asyncDispose](),
  }
}

function settingsIn(data_dir: string, database_url: string | null, relay_port: number) {
  const flags: NonNullable<Sources["flags"]> = {
    data_dir,
    ...(database_url !== null && { database_url }),
    ...OWN_PORTS,
    "storage.min_free_mb": 0,
    "webhooks.require_https": false,
    "webhooks.allow_private": ["127.0.0.0/8"],
    ...relayedTo(relay_port),
  }
  return loadSettings({ environment: {}, flags })
}

const caller = (url: string) => async (path: string, body: object, key?: string) => {
  const authorization = key === undefined ? {} : { authorization: `Bearer ${key}` }
  const headers = { "content-type": "application/json", ...authorization }
  const response = await fetch(`${url}${path}`, {
    method: "POST",
    headers,
    body: JSON.stringify(body),
  })
  const answer = (await response.json()) as { data: Record<string, never>; id: string }
  if (!response.ok) throw new Error(`${path}: ${response.status} ${JSON.stringify(answer)}`)
  return answer as { data: Record<string, { key: string }>; id: string }
}

/** Backups of a server while it accepts and delivers, and while its endpoint hears of that. */
async function copiesUnderLoad(count: number, hook: string): Promise<string[]> {
  using relay = countingRelay({ delay_ms: RELAY_MS })
  await using place = await database()
  const loaded = settingsIn(join(folder, "original"), place.url, relay.port)
  const running = await start({ loaded, mode: "serve" })
  const call = caller(running.url)
  const owner = { email: "ann@example.org", password: "Quiet-River-42-stone" }
  const made = await call("/v1/setup", {
    ...owner,
    setup_token: running.setup?.token,
    account_name: "Acme",
  })
  const key = made.data.api_key?.key ?? ""
  await call("/v1/webhooks", { url: hook, events: ["*"] }, key)
  let is_over = false
  const sender = async (number: number) => {
    for (let at = 0; !is_over; at++) {
      const to = `p${number}-${at}@${at % 2 === 0 ? "even" : "odd"}.test`
      await call("/v1/emails", { from: "me@example.test", to, subject: "Hi", text: "x" }, key)
      await Bun.sleep(20)
    }
  }
  const load = Promise.all(Array.from({ length: SENDERS }, (_, number) => sender(number)))
  const paths: string[] = []
  for (let at = 0; at < count; at++) {
    await Bun.sleep(100)
    const parts = { settings: loaded.values, secrets: running.secrets }
    paths.push((await createBackup(parts, { keep: count })).path)
  }
  is_over = true
  await load
  await running.stop()
  return paths
}

async function broken(store: Store): Promise<BrokenInvariant[]> {
  const found: BrokenInvariant[] = []
  await store.snapshot(async (db) => {
    const look = { db, pause: async () => {}, since: null, overdue_before: null }
    for (const { id, account_id } of await db.select().from(projects)) {
      for await (const one of brokenIn(look, { kind: "project", id })) found.push(one)
      for await (const one of brokenIn(look, { kind: "account", id: account_id })) found.push(one)
    }
  })
  return found
}

const heldMail = ({ read }: Store) =>
  read.select().from(messages).where(eq(messages.owner, RESTORE_HOLD))

/** What the endpoint must have heard: each delivery that was made from here on, once. */
async function deliveredSince({ read }: Store, since: string): Promise<string[]> {
  const rows = await read.select().from(deliveries).where(eq(deliveries.status, "success"))
  return rows.flatMap((row) => ((row.last_attempted_at ?? "") >= since ? [row.event_id] : []))
}

async function quiet(store: Store) {
  const isOpen = async () => {
    const mail = and(eq(messages.status, "queued"))
    const open = await store.read.select({ id: messages.id }).from(messages).where(mail)
    const waits = eq(deliveries.status, "pending")
    const pending = await store.read.select({ id: deliveries.id }).from(deliveries).where(waits)
    return open.length + pending.length > 0
  }
  while (await isOpen()) await Bun.sleep(50)
}

/** Nothing leaves before one half is released and the other dropped; then exactly the first half does. */
async function judge(running: Running, relay: ReturnType<typeof countingRelay>, hook: Receiver) {
  const { store } = running
  const since = new Date().toISOString()
  await Bun.sleep(SILENCE_MS)
  expect([relay.receipts.length, hook.received.length]).toEqual([0, 0])
  expect(await broken(store)).toEqual([])

  const open = await heldMail(store)
  const wanted = open.filter(({ address: recipient }) => recipient.endsWith("@even.test"))
  const dropped = { action: "purge", filter: { kind: "email", domain: "odd.test" } } as const
  expect((await changeHeld(store, dropped)).counts.messages).toBe(open.length - wanted.length)
  const { counts } = await changeHeld(store, { action: "resume", filter: {} })
  expect(counts.messages).toBe(wanted.length)
  await quiet(store)
  await Bun.sleep(SILENCE_MS / 3)
  const told = relay.receipts.map(({ message_id }) => message_id)
  expect(told.sort()).toEqual(wanted.map(({ id }) => `<${id}@example.test>`).sort())
  const heard = hook.received.map(({ id }) => id).sort()
  expect(heard).toEqual((await deliveredSince(store, since)).sort())
  expect(new Set(heard).size).toBe(heard.length)
  expect(heard.length).toBeGreaterThanOrEqual(counts.webhook_deliveries)
  expect(await broken(store)).toEqual([])
  return open.length
}

test("copies made under load send nothing before they are released, and then exactly what was released", async () => {
  using hook = receiver(async () => {
    await Bun.sleep(30)
    return new Response("thanks")
  })
  const paths = await copiesUnderLoad(sizes.restored_copies, hook.url)
  const data_dir = join(folder, "original")
  const secrets = openSecrets({ data_dir, master_key: null, make: false })
  let open = 0
  for (const [number, path] of paths.entries()) {
    using relay = countingRelay()
    await using place = await database()
    hook.received.length = 0
    const loaded = settingsIn(join(folder, `copy-${number}`), place.url, relay.port)
    const key = await Bun.file(join(data_dir, "master.key")).text()
    const parts = { settings: loaded.values, secrets, master_key: key.trim() }
    const changed = await restore(await openArchive(path), {
      ...parts,
      runs_on: ALLOWED_WHILE_HELD,
      revoke_keys: false,
    })
    expect(changed.ended.sessions).toBe(1)
    const running = await start({ loaded, mode: "serve" })
    try {
      open += await judge(running, relay, hook)
    } finally {
      await running.stop()
    }
  }
  expect(open).toBeGreaterThan(0)
}, 1_800_000)
