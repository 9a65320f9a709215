import { and, eq, inArray, lte, notInArray, type SQL } from "drizzle-orm"
import type { SQLiteColumn, SQLiteTable } from "drizzle-orm/sqlite-core"
import { auditLog } from "../audit-log/tables"
import { consents, unsubscribeLinks } from "../consents/tables"
import type { Blobs } from "../core/blobs"
import { now, sleep } from "../core/time"
import { dkimKeys, domains } from "../domains/tables"
import { events } from "../events/tables"
import { fanOutParts, fanOuts } from "../fan-out/tables"
import { idempotency } from "../http/tables"
import { accountMembers, accounts, apiKeys, projectMembers, projects } from "../identity/tables"
import {
  inboundContents,
  inboundEmails,
  inboundFiles,
  inboundRaws,
  inboundRoutes,
} from "../inbound/tables"
import { jobs, longJobs } from "../jobs/tables"
import { mailboxMails, mailboxRecipients } from "../mailbox/tables"
import {
  attempts,
  fanOutContents,
  messageContents,
  messageFiles,
  messageRaws,
  messages,
  messageTags,
} from "../messages/tables"
import { quotas, sendBuckets } from "../plans/tables"
import { providerConfigs, providerReceipts } from "../providers/tables"
import { complaintHolds, reputationHours } from "../reputation/tables"
import { requestLog } from "../request-log/tables"
import { signingKeys } from "../signing-keys/tables"
import { held } from "../store/dialect"
import type { Reader, Store, Tx } from "../store/store"
import { counters } from "../store/tables"
import {
  categories,
  mergedSubscribers,
  subscriberPostings,
  subscribers,
  subscriberTags,
  subscriberWords,
  unsubscribes,
} from "../subscribers/tables"
import { generalBounces, softFailures, suppressions } from "../suppressions/tables"
import { templates, templateVersions } from "../templates/tables"
import { purgeAccount } from "../tenancy/accounts"
import { purgeProject } from "../tenancy/projects"
import { invitations, usageDays } from "../tenancy/tables"
import { topicMembers, topics } from "../topics/tables"
import { messageTracking, trackingLinks } from "../tracking/tables"
import { removeHourOf } from "../webhooks/hours"
import { deliveries, webhooks, webhookTotals } from "../webhooks/tables"
import { type FileTable, namedAmong } from "./file-sweep"

/** Rows of one transaction, and of one look: others work in between. */
const AT_ONCE = 200

type TableWithId = SQLiteTable & { id: SQLiteColumn }

interface LargeTable {
  rows: TableWithId & { project_id: SQLiteColumn }
  /** The columns that name such a row elsewhere. */
  named_by: SQLiteColumn[]
  /** The order that an index of the project gives, where it is not that of ids. */
  order?: SQLiteColumn
}

/** The columns that name a message: what is deleted with it. */
export const namedByMessages: SQLiteColumn[] = [
  messageContents.message_id,
  messageRaws.message_id,
  messageFiles.message_id,
  attempts.message_id,
  providerReceipts.message_id,
  trackingLinks.message_id,
  messageTracking.message_id,
]

/** What a project has by the hundred. */
const large: LargeTable[] = [
  {
    rows: messages,
    named_by: namedByMessages,
  },
  { rows: mailboxMails, named_by: [mailboxRecipients.mail_id, messageFiles.message_id] },
  {
    rows: inboundEmails,
    named_by: [inboundRaws.inbound_id, inboundContents.inbound_id, inboundFiles.inbound_id],
  },
  { rows: events, named_by: [deliveries.event_id] },
  { rows: requestLog, named_by: [] },
  { rows: suppressions, named_by: [] },
  { rows: unsubscribeLinks, named_by: [], order: unsubscribeLinks.address },
  { rows: consents, named_by: [] },
  { rows: templates, named_by: [templateVersions.template_id] },
  {
    rows: subscribers,
    named_by: [
      topicMembers.subscriber_id,
      unsubscribes.subscriber_id,
      mergedSubscribers.subscriber_id,
    ],
  },
  { rows: topics, named_by: [] },
  {
    rows: fanOuts,
    named_by: [fanOutParts.fan_out_id, fanOutContents.fan_out_id, counters.project_id],
  },
]

/** Deletes some of the owner's rows and what names them. Returns how many rows went. */
async function purgeSome(
  tx: Tx,
  rows: TableWithId,
  owner: SQL,
  { named_by = [], order = rows.id }: Partial<LargeTable> = {},
): Promise<number> {
  const some = tx.select({ id: rows.id }).from(rows).where(owner).orderBy(order).limit(AT_ONCE)
  const ids = (await held(some)).map(({ id }) => id) // in the order in which others lock them
  if (ids.length === 0) return 0
  for (const column of named_by) await tx.delete(column.table).where(inArray(column, ids))
  await tx.delete(rows).where(inArray(rows.id, ids))
  return ids.length
}

/** Names that a project gives to many rows: for lists that are filtered by them. */
interface NamedRows {
  rows: SQLiteTable & { project_id: SQLiteColumn }
  name: SQLiteColumn
  id: SQLiteColumn
}

const named: NamedRows[] = [
  { rows: messageTags, name: messageTags.tag, id: messageTags.message_id },
  { rows: subscriberTags, name: subscriberTags.tag, id: subscriberTags.subscriber_id },
  { rows: subscriberWords, name: subscriberWords.word, id: subscriberWords.subscriber_id },
  { rows: subscriberPostings, name: subscriberPostings.term, id: subscriberPostings.first },
]

/** As `purgeSome`, for rows of one name. */
async function purgeNames(tx: Tx, project_id: string, { rows, name, id }: NamedRows) {
  const found = tx.select({ id, name }).from(rows)
  const [first] = await found.where(eq(rows.project_id, project_id)).limit(1)
  if (!first) return 0
  const alike = and(eq(rows.project_id, project_id), eq(name, first.name))
  const ids = (await found.where(alike).limit(AT_ONCE)).map((row) => row.id)
  await tx.delete(rows).where(and(alike, inArray(id, ids)))
  return ids.length
}

/** What a project has little of, and the project itself. What it used stays with the account. */
async function rest(tx: Tx, project_id: string) {
  const few = [
    dkimKeys,
    domains,
    inboundRoutes,
    providerConfigs,
    apiKeys,
    webhooks,
    idempotency,
    projectMembers,
    counters,
    sendBuckets,
    softFailures,
    generalBounces,
    longJobs,
    reputationHours,
    complaintHolds,
    webhookTotals,
    categories,
    signingKeys,
  ]
  for (const table of few) {
    await tx.delete(table).where(eq(table.project_id, project_id))
  }
  const kept = [purgeProject.name, purgeAccount.name]
  await tx.delete(jobs).where(and(eq(jobs.project_id, project_id), notInArray(jobs.name, kept)))
  await tx.delete(projects).where(eq(projects.id, project_id))
}

export interface PurgeParts {
  store: Store
  blobs: Blobs
}

/** Removes a project whose days are over, with all that names it; not one that was restored. */
export async function purgeProjectNow({ store, blobs }: PurgeParts, id: string): Promise<void> {
  const over = and(eq(projects.id, id), lte(projects.deleting_at, now()))
  const [project] = await store.read.select().from(projects).where(over)
  if (project) await empty({ store, blobs }, id)
}

async function empty({ store, blobs }: PurgeParts, project_id: string) {
  const files = await filesOf(store.read, project_id)
  for (const one of large) {
    const ours = eq(one.rows.project_id, project_id)
    while ((await store.tx((tx) => purgeSome(tx, one.rows, ours, one))) > 0);
  }
  for (const one of named) {
    while ((await store.tx((tx) => purgeNames(tx, project_id, one))) > 0);
  }
  while ((await store.tx((tx) => removeHourOf(tx, project_id))) > 0);
  await removeUnnamed(store.read, blobs, files)
  await store.tx((tx) => rest(tx, project_id))
}

/** The same for an account, its projects and its audit log. */
export async function purgeAccountNow({ store, blobs }: PurgeParts, id: string): Promise<void> {
  const over = and(eq(accounts.id, id), lte(accounts.deleting_at, now()))
  const [account] = await store.read.select().from(accounts).where(over)
  if (!account) return
  const ours = eq(projects.account_id, id)
  for (const project of await store.read.select().from(projects).where(ours)) {
    await empty({ store, blobs }, project.id)
  }
  const told = eq(auditLog.account_id, id)
  while ((await store.tx((tx) => purgeSome(tx, auditLog, told))) > 0);
  await store.tx(async (tx) => {
    await tx.delete(accountMembers).where(eq(accountMembers.account_id, id))
    await tx.delete(invitations).where(eq(invitations.account_id, id))
    await tx.delete(counters).where(eq(counters.project_id, id))
    await tx.delete(usageDays).where(eq(usageDays.account_id, id))
    await tx.delete(quotas).where(eq(quotas.subject, id))
    await tx.delete(accounts).where(eq(accounts.id, id))
  })
}

/**
 * The hashes of the files that messages and caught mails of the project name. Files are shared by content, so a file that
 * another project names too stays. What a crash leaves behind, `file-sweep.ts` finds.
 */
async function filesOf(db: Reader, project_id: string): Promise<string[]> {
  const { sha256, message_id } = messageFiles
  const namedBy = (rows: typeof messages | typeof mailboxMails) =>
    db
      .selectDistinct({ sha256 })
      .from(messageFiles)
      .innerJoin(rows, eq(rows.id, message_id))
      .where(eq(rows.project_id, project_id))
  const found = [...(await namedBy(messages)), ...(await namedBy(mailboxMails))]
  return found.map((row) => row.sha256)
}

/** Removes those of the files that no row of the table names. A file that is younger than an hour stays. */
export async function removeUnnamed(
  db: Reader,
  blobs: Blobs,
  files: string[],
  table: FileTable = messageFiles,
): Promise<void> {
  for (let at = 0; at < files.length; at += AT_ONCE) {
    const some = files.slice(at, at + AT_ONCE)
    const kept = await namedAmong(db, table, some)
    for (const sha256 of some) if (!kept.has(sha256)) await blobs.remove(sha256)
    await sleep(0)
  }
}
