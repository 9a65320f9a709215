import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { settings } from "../../src/core/config"
import { newId } from "../../src/core/ids"
import { openSecrets } from "../../src/core/secrets"
import { now } from "../../src/core/time"
import { mailbox } from "../../src/emails/providers/mailbox"
import type { EmailProvider } from "../../src/emails/providers/provider"
import { PRIORITIES, READY } from "../../src/jobs/work-item"
import * as mails from "../../src/mailbox/mailbox"
import { openMailbox } from "../../src/mailbox/smtp-server"
import { messages } from "../../src/messages/tables"
import { openStore } from "../../src/store/open"
import type { Store } from "../../src/store/store"
import { mailTo } from "../contracts/email-provider"
import { lateBlobs } from "../harness/late-blobs"
import { addProject } from "../harness/project-rows"

const FAST_SLOWNESS_MS = 50

/** The embedded mailbox on a free port, over a store of its own with one project in it. */
export async function openTestMailbox({
  fallback = true,
  most_waiting,
}: {
  fallback?: boolean
  most_waiting?: number
} = {}) {
  const folder = mkdtempSync(join(tmpdir(), "belfry-mailbox-"))
  const path = join(folder, "test.db")
  const store = await openStore({ ...settings(), data_dir: folder, "storage.sqlite.path": path })
  const secrets = openSecrets({ data_dir: folder, master_key: null })
  const blobs = lateBlobs(join(folder, "blobs"))
  const { project_id } = await addProject(store)
  const complaints: string[] = []
  const server = await openMailbox({
    store,
    secrets,
    blobs,
    listen: { host: "127.0.0.1", port: 0 },
    fallback_project: () => (fallback ? project_id : undefined),
    complained: async (message_id) => void complaints.push(message_id),
    slow_ms: FAST_SLOWNESS_MS,
    most_waiting,
  })
  const provider: EmailProvider = mailbox({ port: server.port })
  return {
    store,
    secrets,
    blobs,
    project_id,
    complaints,
    server,
    provider,
    async list(filter: mails.MailFilter = {}, window = {}) {
      const { rows, total } = await mails.list(store.read, project_id, filter, window)
      return { rows, total: await total() }
    },
    addMessage: () => addMessage(store, project_id),
    addProject: async () => (await addProject(store)).project_id,
    /** Sends a mail that carries this Message-ID to these addresses. */
    send(message_id: string, ...to: string[]) {
      const mail = mailTo(...to)
      const text = Buffer.from(mail.raw).toString()
      const raw = Buffer.from(text.replaceAll(mail.message_id, message_id))
      return provider.send({ ...mail, message_id, raw })
    },
    async [Symbol.asyncDispose]() {
      await provider.close()
      await server.close()
      await store.close()
      rmSync(folder, { recursive: true })
    },
  }
}

/** The row by which the mailbox finds the project of a mail. */
async function addMessage(store: Store, project_id: string): Promise<string> {
  const [id, at] = [newId(), now()]
  const row: typeof messages.$inferInsert = {
    id,
    account_id: newId(),
    project_id,
    channel: "email",
    status: "queued",
    address: "ann@example.test",
    recipients: [],
    stream: "transactional",
    source: "api",
    tags: [],
    metadata: {},
    sandbox: false,
    priority: PRIORITIES.normal,
    state: READY,
    run_at: at,
    attempt: 0,
    created_at: at,
    updated_at: at,
  }
  await store.tx((tx) => tx.insert(messages).values(row))
  return id
}
