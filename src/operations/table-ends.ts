import type { SQLiteTable } from "drizzle-orm/sqlite-core"
import { auditLog } from "../audit-log/tables"
import { consents, unsubscribeLinks } from "../consents/tables"
import type { Settings } from "../core/config"
import { dkimKeys, domains } from "../domains/tables"
import { mtaStsPolicies } from "../emails/tables"
import { events } from "../events/tables"
import { fanOutParts, fanOuts } from "../fan-out/tables"
import { idempotency, rateWindows } from "../http/tables"
import {
  accountMembers,
  accounts,
  apiKeys,
  backupCodes,
  consoleSessions,
  consoleUsers,
  deviceCodes,
  mfaChallenges,
  passwordHistory,
  passwordResets,
  projectMembers,
  projects,
  type Retention,
  refreshTokens,
  throttles,
} from "../identity/tables"
import {
  inboundContents,
  inboundEmails,
  inboundFiles,
  inboundRaws,
  inboundRoutes,
} from "../inbound/tables"
import { jobs, longJobs, nodes, pausedQueues } from "../jobs/tables"
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
import { counters, instanceValues } from "../store/tables"
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
import { invitations, usageDays } from "../tenancy/tables"
import { topicMembers, topics } from "../topics/tables"
import { messageTracking, trackingLinks } from "../tracking/tables"
import { deliveries, webhookHours, webhooks, webhookTotals } from "../webhooks/tables"

/** The settings of the configuration that end rows. */
export type EndSettings = Pick<Settings, "retention.request_log" | "retention.audit_log">

/** How the rows of a table end. Rows of open work stay, however old they are. */
export type TableEnd =
  /** By themselves, after the days of a project's setting `retention`. */
  | { by: "project_setting"; setting: keyof Retention }
  /** By themselves, after a setting of the configuration. */
  | { by: "setting"; key: keyof EndSettings }
  /** By themselves, this long after they were made, or were over. */
  | { by: "age"; after: string }
  /** With the row that they belong to. */
  | { by: "row"; of: SQLiteTable }
  /** When a person removes them, at the latest with what they belong to. */
  | { by: "person"; owner: "project" | "account" | "user" | "instance" }

const after = (text: string): TableEnd => ({ by: "age", after: text })
const days = (setting: keyof Retention): TableEnd => ({ by: "project_setting", setting })
const withRow = (of: SQLiteTable): TableEnd => ({ by: "row", of })
const withOwner = (owner: "project" | "account" | "user" | "instance"): TableEnd => ({
  by: "person",
  owner,
})

/** The end of every table of the schema. A table without one fails its test. */
export const tableEnds: ReadonlyMap<SQLiteTable, TableEnd> = new Map<SQLiteTable, TableEnd>([
  [messages, days("messages_days")],
  [messageTags, withRow(messages)],
  [attempts, withRow(messages)],
  [providerReceipts, withRow(messages)],
  [messageTracking, withRow(messages)],
  [trackingLinks, withRow(messages)],
  [messageContents, days("bodies_days")],
  [messageRaws, days("bodies_days")],
  [messageFiles, days("bodies_days")],
  [mailboxMails, days("bodies_days")],
  [mailboxRecipients, withRow(mailboxMails)],
  [fanOuts, days("messages_days")],
  [fanOutParts, withRow(fanOuts)],
  [fanOutContents, days("bodies_days")],
  [inboundEmails, days("inbound_days")],
  [inboundContents, withRow(inboundEmails)],
  [inboundRaws, withRow(inboundEmails)],
  [inboundFiles, withRow(inboundEmails)],
  [events, days("events_days")],
  [deliveries, days("webhook_deliveries_days")],

  [requestLog, { by: "setting", key: "retention.request_log" }],
  [auditLog, { by: "setting", key: "retention.audit_log" }],

  [idempotency, after("24 hours")],
  [rateWindows, after("minutes")],
  [jobs, after("30 days")],
  [longJobs, after("30 days")],
  [nodes, after("the end of the process")],
  [mtaStsPolicies, after("their own age")],
  [consoleSessions, after("30 days without use")],
  [refreshTokens, after("30 days without use")],
  [deviceCodes, after("minutes")],
  [mfaChallenges, after("minutes")],
  [passwordResets, after("an hour")],
  [throttles, after("hours")],
  [invitations, after("90 days")],
  [apiKeys, after("a year after their end")],
  [suppressions, after("their own end")],
  [softFailures, after("7 days")],
  [generalBounces, after("7 days")],
  [reputationHours, after("30 days")],
  [webhookHours, after("7 days")],
  [complaintHolds, after("30 days after the release")],
  [usageDays, after("3 years")],
  [quotas, after("3 years")],

  [templates, withOwner("project")],
  [templateVersions, withRow(templates)],
  [topics, withOwner("project")],
  [topicMembers, withRow(topics)],
  [subscribers, withOwner("project")],
  [subscriberWords, withRow(subscribers)],
  [subscriberPostings, withRow(subscribers)],
  [subscriberTags, withRow(subscribers)],
  [unsubscribes, withRow(subscribers)],
  [mergedSubscribers, withRow(subscribers)],
  [categories, withOwner("project")],
  [domains, withOwner("project")],
  [dkimKeys, withRow(domains)],
  [webhooks, withOwner("project")],
  [webhookTotals, withOwner("project")],
  [inboundRoutes, withOwner("project")],
  [providerConfigs, withOwner("project")],
  [signingKeys, withOwner("project")],
  [sendBuckets, withOwner("project")],
  [counters, withOwner("project")],
  [projectMembers, withOwner("project")],
  // What people allowed and forbade has to be shown for as long as the project sends.
  [consents, withOwner("project")],
  // Mail in mailboxes carries these links for years.
  [unsubscribeLinks, withOwner("project")],
  [projects, withOwner("account")],
  [accounts, withOwner("account")],
  [accountMembers, withOwner("account")],
  [consoleUsers, withOwner("user")],
  [backupCodes, withOwner("user")],
  [passwordHistory, withOwner("user")],
  [pausedQueues, withOwner("instance")],
  [instanceValues, withOwner("instance")],
])

/** Whether rows of the table go by themselves some day. */
export const endsByItself = ({ by }: TableEnd): boolean =>
  by === "project_setting" || by === "setting" || by === "age"

/** For how long rows are kept, in the words of a person. `usual` has the days of a project without a setting. */
export function endText(table: SQLiteTable, usual: Retention, settings: EndSettings): string {
  const end = tableEnds.get(table)
  if (end === undefined) return "not known"
  if (end.by === "project_setting") return `${usual[end.setting]} days (${end.setting})`
  if (end.by === "setting") return settingText(end.key, settings[end.key])
  if (end.by === "age") return end.after
  if (end.by === "row") return endText(end.of, usual, settings)
  return end.owner === "instance" ? "for ever" : "until somebody removes them"
}

const DAY_MS = 86_400_000

const settingText = (key: keyof EndSettings, kept_ms: number | null) =>
  kept_ms === null ? `for ever (${key} is not set)` : `${kept_ms / DAY_MS} days (${key})`
