import { expect, test } from "bun:test"
import { openBlobs } from "../../src/core/blobs"
import { openSecrets } from "../../src/core/secrets"
import { openWorkers } from "../../src/core/workers"
import { emailChannel } from "../../src/emails/channel"
import type { EmailProvider } from "../../src/emails/providers/provider"
import { accept } from "../../src/messages/pipeline"
import { noTemplates } from "../harness/no-templates"
import { testPauses } from "../harness/pauses"
import { quietLog } from "../harness/quiet"
import { testStore } from "../harness/store"
import { testAddress, testLinks } from "../harness/unsubscribe"
import { letter } from "../messages/letters"

const logged = quietLog()
const warnings = () =>
  logged()
    .filter((line) => line.includes("without a DKIM signature"))
    .map((line) => JSON.parse(line) as Record<string, unknown>)

const CONTENT = { html: null, text: "Dong.", headers: {} }

/** Mail of these domains is composed, all of it vouched for by the operator, none with a key. */
async function composing(name: string, domains: string[], sandbox = false) {
  await using it = await testStore()
  const provider: EmailProvider = {
    name,
    schedule: () => undefined,
    send: () => Promise.reject(new Error("nothing should be sent")),
    close: async () => {},
  }
  const workers = openWorkers({ size: 1 })
  const channel = emailChannel({
    store: it.store,
    secrets: openSecrets({ data_dir: it.folder, master_key: null }),
    workers,
    blobs: openBlobs(`${it.folder}/blobs`),
    provider,
    rules: {
      sending_domains: new Set(domains),
      unsubscribe: testLinks,
      publicAddress: testAddress,
      templates: noTemplates(it.store.read),
    },
    sandbox: provider,
    queues: testPauses(it.store),
    concurrency: 1,
  })
  const before = warnings().length
  for (const sender_domain of domains) {
    const [message] = await it.store.tx((tx) => accept(tx, [letter({ sender_domain, sandbox })]))
    if (message) await channel.prepare?.(message, CONTENT, 1)
  }
  await workers.close()
  return warnings().slice(before)
}

test("mail that leaves unsigned is warned of once for each domain of sending_domains", async () => {
  const told = await composing("smtp", ["a.test", "b.test", "a.test"])
  expect(told).toMatchObject([
    { level: "warn", domain: "a.test", next: "belfry domains add a.test" },
    { level: "warn", domain: "b.test" },
  ])
})

test("nothing is said of mail that only the embedded mailbox or the sandbox gets", async () => {
  expect(await composing("mailbox", ["c.test"])).toEqual([])
  expect(await composing("smtp", ["d.test"], true)).toEqual([])
})
