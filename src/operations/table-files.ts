// Written by `bun run generate`: the first table of every file of tables.
import { aiQuotas } from "../ai/tables"
import { auditLog } from "../audit-log/tables"
import { userFactors } from "../auth/factors/tables"
import { organizations } from "../auth/organizations/tables"
import { userIdentities } from "../auth/social/tables"
import { applications } from "../auth/tables"
import { unsubscribeLinks } from "../consents/tables"
import { devices } from "../devices/tables"
import { domains } from "../domains/tables"
import { mtaStsPolicies } from "../emails/tables"
import { events } from "../events/tables"
import { fanOuts } from "../fan-out/tables"
import { idempotency } from "../http/tables"
import { accounts } from "../identity/tables"
import { inboundEmails } from "../inbound/tables"
import { inboxContents } from "../inbox/tables"
import { jobs } from "../jobs/tables"
import { mailboxMails } from "../mailbox/tables"
import { messages } from "../messages/tables"
import { quotas } from "../plans/tables"
import { providerConfigs } from "../providers/tables"
import { pushAcks } from "../push/tables"
import { reputationHours } from "../reputation/tables"
import { requestLog } from "../request-log/tables"
import { signingKeys } from "../signing-keys/tables"
import { counters } from "../store/tables"
import { subscribers } from "../subscribers/tables"
import { suppressions } from "../suppressions/tables"
import { templates } from "../templates/tables"
import { invitations } from "../tenancy/tables"
import { topics } from "../topics/tables"
import { messageTracking } from "../tracking/tables"
import { webhooks } from "../webhooks/tables"

export const firstTables = [
  aiQuotas,
  auditLog,
  userFactors,
  organizations,
  userIdentities,
  applications,
  unsubscribeLinks,
  devices,
  domains,
  mtaStsPolicies,
  events,
  fanOuts,
  idempotency,
  accounts,
  inboundEmails,
  inboxContents,
  jobs,
  mailboxMails,
  messages,
  quotas,
  providerConfigs,
  pushAcks,
  reputationHours,
  requestLog,
  signingKeys,
  counters,
  subscribers,
  suppressions,
  templates,
  invitations,
  topics,
  messageTracking,
  webhooks,
]
