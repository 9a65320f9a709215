/**
 * Accepts messages on the database in DATABASE_URL, `together` as the service does it, or `alone`:
 * one transaction a message through the same accept. A process of its own:
 * `accept-lanes.ts together|alone SECONDS` prints what it accepted and what the database holds.
 */
import { sql } from "drizzle-orm"
import { openBlobs } from "../../src/core/blobs"
import { settings } from "../../src/core/config"
import { Problems } from "../../src/core/errors"
import { openSecrets } from "../../src/core/secrets"
import { openWorkers } from "../../src/core/workers"
import { reply } from "../../src/emails/channel"
import { readSendEmail } from "../../src/emails/fields"
import { prepare } from "../../src/emails/prepare"
import { type Claim, keepAnswer } from "../../src/http/idempotency"
import { authenticate } from "../../src/identity/authenticate"
import { accept, entryOf, SendBatcher } from "../../src/messages/accept"
import type { NewMessage } from "../../src/messages/tables"
import { messages } from "../../src/messages/tables"
import { openStore } from "../../src/store/open"
import { TemplateRenderer } from "../../src/templates/template-renderer"
import { ensureFirst } from "../../src/tenancy/setup"
import { testAddress, testLinks } from "../harness/unsubscribe"

const IN_FLIGHT = 64

const [way = "together", seconds = "1", body = ""] = process.argv.slice(2)
const { data_dir } = settings()
const store = await openStore(settings())
const secrets = openSecrets({ data_dir, master_key: null })
const first = await ensureFirst(store, secrets, { keep_key: false, new_key: false })
const caller = await authenticate(store.read, first.api_key ?? "", "127.0.0.1")
const blobs = openBlobs(`${data_dir}/blobs`)
const rules = {
  read: store.read,
  providerOf: async () => null,
  sending_domains: new Set(["bench.test"]),
  to_mailbox: false,
  mailbox_takes_all: false,
  files: { allow_private: [] },
  has_mailbox: false,
  templates: { read: store.read, renderer: new TemplateRenderer(openWorkers({ size: 1 })) },
  unsubscribe: testLinks,
  publicAddress: testAddress,
}
const intake = new SendBatcher(store)
const email = readSendEmail(await Bun.file(body).json(), new Problems())
const { signal } = new AbortController()
const together = (...[message, claim]: Arrival) =>
  intake.submit(entryOf(message, caller), { claim, signal }, reply)
const submit = way === "together" ? together : enterAlone

let accepted = 0
const begun = performance.now()
const end = begun + Number(seconds) * 1000
await Promise.all(Array.from({ length: IN_FLIGHT }, work))
const took = (performance.now() - begun) / 1000

const [row] = await store.read.select({ rows: sql<number>`count(*)` }).from(messages)
const stored = Number(row?.rows)
console.log(JSON.stringify({ per_second: accepted / took, accepted, stored }))
await store.close()
process.exit(0)

type Arrival = [NewMessage, Claim]

async function work() {
  while (performance.now() < end) {
    const key = crypto.randomUUID()
    const sender = { caller, source: "api" as const, batch_id: null, idempotency_key: key }
    const message = await prepare(email, sender, rules, blobs)
    const { project_id } = caller
    const body_hash = "0".repeat(64)
    await submit(message, {
      request: `${project_id} POST /v1/emails ${key}`,
      project_id,
      key,
      body_hash,
      status: 201,
      secrets: undefined,
    })
    accepted += 1
  }
}

function enterAlone(message: NewMessage, claim: Claim): Promise<void> {
  return store.tx(async (tx) => {
    await keepAnswer(tx, claim, reply(message))
    await accept(tx, [entryOf(message, caller)], "apart")
  })
}
