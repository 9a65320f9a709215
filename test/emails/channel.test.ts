import { expect, test } from "bun:test"
import { openBlobs } from "../../src/core/blobs"
import { openSecrets } from "../../src/core/secrets"
import { openWorkers, type Workers } from "../../src/core/workers"
import { emailChannel } from "../../src/emails/channel"
import { compose } from "../../src/emails/compose-email"
import { Uncomposable } from "../../src/emails/compose-task"
import { MailNotMade } from "../../src/emails/mailer-orders"
import type { EmailProvider } from "../../src/emails/providers/provider"
import { accept } from "../../src/messages/pipeline"
import { noTemplates } from "../harness/no-templates"
import { testPauses } from "../harness/pauses"
import { quietLog } from "../harness/quiet"
import { testStore } from "../harness/store"
import { testAddress, testLinks } from "../harness/unsubscribe"
import { letter } from "../messages/letters"
import { refusal } from "../store/facts"
import { MAIL } from "./composed"

quietLog()

const CONTENT = { html: null, text: "Dong.", headers: {} }

/** What delivering comes to when composing ends like this, in the thread of the mailer or in another. */
async function delivering(composing: Error, is_large: boolean) {
  await using it = await testStore()
  const workers = { run: () => Promise.reject(composing), close: async () => {} } as Workers
  const provider: EmailProvider = {
    name: "smtp",
    makes_mail: true,
    schedule: () => undefined,
    send: () => Promise.reject(new MailNotMade(composing)),
    close: async () => {},
  }
  const blobs = openBlobs(`${it.folder}/blobs`)
  const secrets = openSecrets({ data_dir: it.folder, master_key: null })
  const rules = {
    sending_domains: new Set(["example.test"]),
    unsubscribe: testLinks,
    publicAddress: testAddress,
  }
  const channel = emailChannel({
    store: it.store,
    secrets,
    workers,
    blobs,
    provider,
    rules: { ...rules, templates: noTemplates(it.store.read) },
    sandbox: undefined,
    queues: testPauses(it.store),
    concurrency: 1,
  })
  const [message] = await it.store.tx((tx) => accept(tx, [letter()]))
  if (!message) throw new Error("nothing was accepted")
  const content = is_large ? { ...CONTENT, text: LONG } : CONTENT
  const ready = await channel.prepare?.(message, content, 1)
  return await channel.deliver(message, ready?.content)
}

const LONG = "x".repeat(70_000)

test.each([false, true])(
  "what can never be a message fails, and does not say more than that (large: %p)",
  async (is_large) => {
    const error = new Uncomposable('control character in "/srv/x"')
    const outcome = await delivering(error, is_large)
    const reason = "The message could not be composed. The log has the reason."
    expect(outcome).toMatchObject({ status: "failed", reason, code: "internal_error" })
  },
)

test.each<[string, Error]>([
  ["a file of another node", Object.assign(new Error("no file"), { code: "ENOENT" })],
  ["a broken disk", Object.assign(new Error("no reading"), { code: "EIO" })],
  ["a dead thread", new Error("the worker thread died")],
  ["a bug", new TypeError("x is undefined")],
])("%s is thrown, so that the job comes again", async (_, error) => {
  expect(await refusal(delivering(error, false))).toBe(error.message)
  expect(await refusal(delivering(error, true))).toBe(error.message)
})

test("the worker says which of the two it is", async () => {
  const workers = openWorkers({ size: 1 })
  const path = "/nowhere/at/all"
  const file = { filename: "a.txt", content_type: "text/plain", content_id: null, path }
  const endings = await Promise.allSettled([
    compose(workers, { ...MAIL, subject: "Ding\nDong" }),
    compose(workers, { ...MAIL, attachments: [file] }),
  ])
  await workers.close()
  expect(endings).toMatchObject([
    { reason: { name: "Uncomposable" } },
    { reason: { name: "Error", code: "ENOENT" } },
  ])
})
