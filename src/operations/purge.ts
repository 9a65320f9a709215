import { and, eq, inArray, isNotNull, lte, notInArray } from "drizzle-orm"
import { auditLog } from "../audit-log/tables"
import type { Blobs } from "../core/blobs"
import { now } from "../core/time"
import { dkimKeys, domains } from "../domains/tables"
import { events } from "../events/tables"
import { idempotency } from "../http/tables"
import { accountMembers, accounts, apiKeys, projectMembers, projects } from "../identity/tables"
import { jobs, longJobs } from "../jobs/tables"
import { mailboxMails, mailboxRecipients } from "../mailbox/tables"
import { attempts, messageContents, messageRaws, messages, messageTags } from "../messages/tables"
import { quotas, sendBuckets } from "../plans/tables"
import { providerConfigs, providerReceipts } from "../providers/tables"
import { requestLog } from "../request-log/tables"
import { held } from "../store/locks"
import type { Store, Tx } from "../store/store"
import { counters } from "../store/tables"
import { purgeAccount } from "../tenancy/accounts"
import { purgeProject } from "../tenancy/projects"
import { invitations, usageDays } from "../tenancy/tables"
import { deliveries, webhooks } from "../webhooks/tables"
import { purgeFiles } from "./purge-files"

/** Rows of one transaction: others are to get their turn between. */
const AT_ONCE = 200

type Batch = (tx: Tx, project_id: string) => Promise<number>

/** What goes by the hundred: of each, some rows and what hangs on them. Returns how many went. */
const batches: Batch[] = [
  async (tx, project_id) => {
    const rows = tx.select({ id: messages.id }).from(messages)
    const ours = rows.where(eq(messages.project_id, project_id)).orderBy(messages.id)
    const ids = await some(held(ours.limit(AT_ONCE))) // in the order in which others lock them
    if (ids.length === 0) return 0
    await tx.delete(messageContents).where(inArray(messageContents.message_id, ids))
    await tx.delete(messageRaws).where(inArray(messageRaws.message_id, ids))
    await tx.delete(attempts).where(inArray(attempts.message_id, ids))
    await tx.delete(providerReceipts).where(inArray(providerReceipts.message_id, ids))
    await tx.delete(messages).where(inArray(messages.id, ids))
    return ids.length
  },
  async (tx, project_id) => {
    const rows = tx.select({ id: mailboxMails.id }).from(mailboxMails)
    const ids = await some(rows.where(eq(mailboxMails.project_id, project_id)).limit(AT_ONCE))
    if (ids.length === 0) return 0
    await tx.delete(mailboxRecipients).where(inArray(mailboxRecipients.mail_id, ids))
    await tx.delete(mailboxMails).where(inArray(mailboxMails.id, ids))
    return ids.length
  },
  async (tx, project_id) => {
    const rows = tx.select({ id: events.id }).from(events)
    const ids = await some(rows.where(eq(events.project_id, project_id)).limit(AT_ONCE))
    if (ids.length === 0) return 0
    await tx.delete(deliveries).where(inArray(deliveries.event_id, ids))
    await tx.delete(events).where(inArray(events.id, ids))
    return ids.length
  },
  async (tx, project_id) => {
    const rows = tx.select({ id: requestLog.id }).from(requestLog)
    const ids = await some(rows.where(eq(requestLog.project_id, project_id)).limit(AT_ONCE))
    if (ids.length > 0) await tx.delete(requestLog).where(inArray(requestLog.id, ids))
    return ids.length
  },
  async (tx, project_id) => {
    const rows = tx.select({ id: messageTags.message_id, tag: messageTags.tag }).from(messageTags)
    const [first] = await rows.where(eq(messageTags.project_id, project_id)).limit(1)
    if (!first) return 0
    const tagged = and(eq(messageTags.project_id, project_id), eq(messageTags.tag, first.tag))
    const ids = await some(rows.where(tagged).limit(AT_ONCE))
    await tx.delete(messageTags).where(and(tagged, inArray(messageTags.message_id, ids)))
    return ids.length
  },
]

const some = async (query: PromiseLike<{ id: string }[]>) => (await query).map(({ id }) => id)

/** What a project has little of, and the project itself. What it used stays with the account. */
async function rest(tx: Tx, project_id: string) {
  const few = [
    dkimKeys,
    domains,
    providerConfigs,
    apiKeys,
    webhooks,
    idempotency,
    projectMembers,
    counters,
    sendBuckets,
    longJobs,
  ]
  for (const table of few) {
    await tx.delete(table).where(eq(table.project_id, project_id))
  }
  const kept = [purgeProject.name, purgeAccount.name]
  await tx.delete(jobs).where(and(eq(jobs.project_id, project_id), notInArray(jobs.name, kept)))
  await tx.delete(projects).where(eq(projects.id, project_id))
}

/** Where things are kept. */
export interface Kept {
  store: Store
  blobs: Blobs
}

/** Removes a project whose days are over, with all that names it; not one that was restored. */
export async function purgeProjectNow({ store, blobs }: Kept, id: string): Promise<void> {
  const over = and(eq(projects.id, id), lte(projects.deleting_at, now()))
  const [project] = await store.read.select().from(projects).where(over)
  if (project) await empty({ store, blobs }, id)
}

async function empty({ store, blobs }: Kept, project_id: string) {
  await purgeFiles(store.read, blobs, project_id) // while the messages still say which they are
  for (const batch of batches) {
    while ((await store.tx((tx) => batch(tx, project_id))) > 0);
  }
  await store.tx((tx) => rest(tx, project_id))
}

/** The same for an account, its projects and its audit log. */
export async function purgeAccountNow({ store, blobs }: Kept, id: string): Promise<void> {
  const over = and(
    eq(accounts.id, id),
    isNotNull(accounts.deleting_at),
    lte(accounts.deleting_at, now()),
  )
  const [account] = await store.read.select().from(accounts).where(over)
  if (!account) return
  const ours = eq(projects.account_id, id)
  for (const project of await store.read.select().from(projects).where(ours)) {
    await empty({ store, blobs }, project.id)
  }
  while ((await store.tx((tx) => forgetAudit(tx, id))) > 0);
  await store.tx(async (tx) => {
    await tx.delete(accountMembers).where(eq(accountMembers.account_id, id))
    await tx.delete(invitations).where(eq(invitations.account_id, id))
    await tx.delete(counters).where(eq(counters.project_id, id))
    await tx.delete(usageDays).where(eq(usageDays.account_id, id))
    await tx.delete(quotas).where(eq(quotas.subject, id))
    await tx.delete(accounts).where(eq(accounts.id, id))
  })
}

async function forgetAudit(tx: Tx, account_id: string): Promise<number> {
  const rows = tx.select({ id: auditLog.id }).from(auditLog)
  const ids = await some(rows.where(eq(auditLog.account_id, account_id)).limit(AT_ONCE))
  if (ids.length > 0) await tx.delete(auditLog).where(inArray(auditLog.id, ids))
  return ids.length
}
