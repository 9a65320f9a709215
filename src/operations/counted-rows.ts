import { and, asc, count, eq, gt, lte, ne, type SQL, sql } from "drizzle-orm"
import type { SQLiteColumn } from "drizzle-orm/sqlite-core"
import { auditLog } from "../audit-log/tables"
import { accountMembers } from "../identity/tables"
import { INBOUND_COUNTER, inboundEmails } from "../inbound/tables"
import { mailboxMails } from "../mailbox/tables"
import { type ChannelName, messages, type Status } from "../messages/tables"
import { knowsStatus, settledCounters } from "../messages/transitions"
import { STORED } from "../plans/stored-bytes"
import type { Reader } from "../store/store"
import { subscribers, subscriberTags } from "../subscribers/tables"
import { suppressions } from "../suppressions/tables"
import { templates } from "../templates/tables"
import { topics } from "../topics/tables"
import { webhooks } from "../webhooks/tables"

/** Rows of one step: some half a millisecond where an index has them. */
const STEP = 2000

/** The rows themselves are read where they are summed. */
const SUMMED_STEP = 500

/** The rows of one owner that a counter stands for, walked by a column that is unique among them. */
export interface CountedRows {
  walked: SQLiteColumn
  where: SQL | undefined
  /** What each row adds; absent where it is one. */
  adds?: SQL
}

/** Where counters of an owner are kept: under the id of a project or of an account. */
export type CounterOwner = "project" | "account"

/** Counters that every owner of the kind has; without a row they are 0. */
export const PLAIN_COUNTERS: Record<CounterOwner, string[]> = {
  project: [
    ...["email", "push", "sms", "in_app", "topics", "templates", "webhooks"],
    ...["mailbox_mails", INBOUND_COUNTER, "subscribers", "suppressions"],
  ],
  account: ["members", "audit_log"],
}

const CHANNELS: ReadonlySet<ChannelName> = new Set<ChannelName>(["email", "push", "sms", "in_app"])

/** What a counter counts; undefined for one that counts no rows, such as the invitations of a day. */
export function countedRows(kind: CounterOwner, id: string, name: string): CountedRows | undefined {
  return kind === "account" ? ofAccount(id, name) : (ofLists(id, name) ?? ofMessages(id, name))
}

function ofAccount(account_id: string, name: string): CountedRows | undefined {
  if (name === "members") {
    return { walked: accountMembers.user_id, where: eq(accountMembers.account_id, account_id) }
  }
  return name === "audit_log"
    ? { walked: auditLog.id, where: eq(auditLog.account_id, account_id) }
    : undefined
}

function ofLists(project_id: string, name: string): CountedRows | undefined {
  const [head = "", filter, ...rest] = name.split(".")
  const value = rest.join(".")
  switch (head) {
    case "topics":
      return { walked: topics.id, where: eq(topics.project_id, project_id) }
    case "templates":
      return { walked: templates.id, where: eq(templates.project_id, project_id) }
    case "webhooks":
      return { walked: webhooks.id, where: eq(webhooks.project_id, project_id) }
    case "mailbox_mails":
      return { walked: mailboxMails.id, where: eq(mailboxMails.project_id, project_id) }
    case INBOUND_COUNTER:
      return ofReceived(project_id)
    case "stored_bytes":
      return ofStored(project_id, name)
    case "subscribers":
      return ofSubscribers(project_id, filter, value)
    case "suppressions":
      return ofSuppressions(project_id, filter, value)
    default:
      return undefined
  }
}

function ofReceived(project_id: string): CountedRows {
  const processed = ne(inboundEmails.status, "received")
  return {
    walked: inboundEmails.id,
    where: and(eq(inboundEmails.project_id, project_id), processed),
  }
}

function ofStored(project_id: string, name: string): CountedRows | undefined {
  if (name === STORED.mailbox) {
    const where = eq(mailboxMails.project_id, project_id)
    return { walked: mailboxMails.id, where, adds: sql`${mailboxMails.size}` }
  }
  if (name === STORED.received) {
    const { stored_bytes, size } = inboundEmails
    return { ...ofReceived(project_id), adds: sql`coalesce(${stored_bytes}, ${size})` }
  }
  const rows = ofMessages(project_id, name.slice("stored_bytes.".length))
  return rows && { ...rows, adds: sql`coalesce(${messages.stored_bytes}, 0)` }
}

function ofSubscribers(
  project_id: string,
  filter: string | undefined,
  value: string,
): CountedRows | undefined {
  const ours = eq(subscribers.project_id, project_id)
  if (filter === undefined) return { walked: subscribers.id, where: ours }
  if (filter === "status") {
    const status = value as typeof subscribers.$inferSelect.status
    return { walked: subscribers.id, where: and(ours, eq(subscribers.status, status)) }
  }
  const tagged = and(eq(subscriberTags.project_id, project_id), eq(subscriberTags.tag, value))
  return filter === "tag" ? { walked: subscriberTags.subscriber_id, where: tagged } : undefined
}

function ofSuppressions(
  project_id: string,
  filter: string | undefined,
  value: string,
): CountedRows | undefined {
  const ours = eq(suppressions.project_id, project_id)
  if (filter === undefined) return { walked: suppressions.id, where: ours }
  const { channel, reason, origin } = suppressions
  const column = { channel, reason, origin }[filter]
  return column && { walked: suppressions.id, where: and(ours, eq(column, value as never)) }
}

function ofMessages(project_id: string, name: string): CountedRows | undefined {
  const [channel = "", status, ...rest] = name.split(".")
  if (!CHANNELS.has(channel as ChannelName) || rest.length > 0) return undefined
  const ours = and(
    eq(messages.project_id, project_id),
    eq(messages.channel, channel as ChannelName),
  )
  if (status === undefined) return { walked: messages.id, where: ours }
  if (!knowsStatus(channel as ChannelName, status)) return undefined
  return { walked: messages.id, where: and(ours, eq(messages.status, status as Status)) }
}

/** Names of counters that the rows of a project ask for, also where the counter itself is lost. */
export async function namesInRows(db: Reader, project_id: string): Promise<string[]> {
  const valuesOf = async (column: SQLiteColumn, of: SQLiteColumn) => {
    const values = db.selectDistinct({ value: column }).from(column.table)
    return (await values.where(eq(of, project_id))).map(({ value }) => String(value))
  }
  const names = [...CHANNELS].flatMap(settledCounters)
  names.push(...Object.values(STORED))
  const { tag, project_id: tagged } = subscriberTags
  for (const value of await valuesOf(subscribers.status, subscribers.project_id))
    names.push(`subscribers.status.${value}`)
  for (const value of await valuesOf(tag, tagged)) names.push(`subscribers.tag.${value}`)
  for (const filter of ["channel", "reason", "origin"] as const) {
    for (const value of await valuesOf(suppressions[filter], suppressions.project_id))
      names.push(`suppressions.${filter}.${value}`)
  }
  return names
}

/** How many rows there are, or what they add up to, in steps with a pause behind each. */
export async function countInSteps(
  db: Reader,
  { walked, where, adds }: CountedRows,
  pause: () => Promise<void>,
): Promise<number> {
  const step = adds ? SUMMED_STEP : STEP
  const sumOf = async (rows: SQL | undefined) => {
    const n = adds ? sql`sum(${adds})` : count()
    const [row] = await db.select({ n }).from(walked.table).where(rows)
    return Number(row?.n ?? 0)
  }
  let counted = 0
  let after: unknown
  for (;;) {
    const rest = after === undefined ? where : and(where, gt(walked, after))
    const ahead = db.select({ last: walked }).from(walked.table).where(rest)
    const [edge] = await ahead
      .orderBy(asc(walked))
      .limit(1)
      .offset(step - 1)
    if (!edge) return counted + (await sumOf(rest))
    counted += adds ? await sumOf(and(rest, lte(walked, edge.last))) : step
    after = edge.last
    await pause()
  }
}
