import type { Blobs } from "./core/blobs"
import { type CheckParts, runCheck } from "./domains/check-job"
import { domainCheck } from "./domains/check-schedule"
import { domainRemoved } from "./domains/domains"
import type { SendRules } from "./emails/prepare"
import { applyFeedback } from "./emails/provider-feedback"
import { fanOutPart, fanOutStart, fanOutStopped } from "./fan-out/fan-out-jobs"
import { start } from "./fan-out/start"
import { endWaiting } from "./fan-out/stopped"
import { walk } from "./fan-out/walk"
import { passwordForgotten, sendReset } from "./identity/password-recovery"
import type { ConsoleMail } from "./identity/system-mail"
import { type ProcessParts, processInbound } from "./inbound/process"
import { inboundProcess } from "./inbound/process-job"
import { bind, type JobHandlers } from "./jobs/jobs"
import { complain, mailboxComplain } from "./mailbox/simulator"
import type { Planners } from "./messages/planner"
import { probeProvider, wakeWaiting } from "./messages/provider-jobs"
import { failMailFrom } from "./messages/removed-domain-mail"
import {
  backupCreate,
  backupFailed,
  backupLacksFiles,
  runBackup,
  tellOfLackingFiles,
  tellOperators,
} from "./operations/backup/backup-job"
import type { Backups } from "./operations/backup/create-backup"
import {
  type ErasureParts,
  eraseRest,
  removeErasedFiles,
  subscriberErased,
} from "./operations/erase-subscriber"
import { erasedFiles } from "./operations/erased-rows"
import { moveRest, subscriberMerged } from "./operations/merged-messages"
import { type PurgeParts, purgeAccountNow, purgeProjectNow } from "./operations/purge"
import * as providerAlerts from "./providers/alerts"
import { providerFeedback } from "./providers/callbacks"
import { providerProbe, providerRefused, providersResumed } from "./providers/health"
import type { OpenProviders } from "./providers/open-providers"
import * as ownerMail from "./reputation/owner-mail"
import { removeFromProviders, suppressionRemoved } from "./suppressions/provider-lists"
import { purgeAccount } from "./tenancy/accounts"
import { purgeProject } from "./tenancy/projects"
import { tellOwners, usageAlert } from "./tenancy/quotas"
import { removeMembers, topicRemoved } from "./topics/topics"
import { tellAdmins, webhookWarning } from "./webhooks/failure-mail"
import { resend, webhookResend } from "./webhooks/resend"

interface JobParts extends PurgeParts, ErasureParts {
  backups: Backups
  inbound_blobs: Blobs
  open_providers: OpenProviders
  domains: CheckParts
  rules: Pick<SendRules, "sending_domains">
  planners: Planners
  inbound: ProcessParts
}

/**
 * What goes on in a restored copy by itself: it tidies, or asks without sending. Every other kind sends
 * something or causes it, and is held there like the messages.
 */
export const RUNS_ON: readonly string[] = [
  domainCheck,
  providerProbe,
  providersResumed,
  topicRemoved,
  subscriberMerged,
  subscriberErased,
  erasedFiles,
  backupCreate,
  purgeProject,
  purgeAccount,
].map(({ name }) => name)

/**
 * Every kind of background job there is, and what does it. Messages and deliveries are work of their
 * own tables.
 */
export const jobHandlers = (
  {
    store,
    secrets,
    backups,
    blobs,
    inbound_blobs,
    domains,
    rules,
    planners,
    open_providers,
    inbound,
  }: JobParts,
  post: ConsoleMail,
): JobHandlers => ({
  ...bind(mailboxComplain, complain(store)),
  ...bind(usageAlert, tellOwners(store, post.mail)),
  ...bind(ownerMail.reputationAlert, ownerMail.tellOwners(store, post.mail)),
  ...bind(domainCheck, runCheck(domains)),
  ...bind(domainRemoved, failMailFrom(store, rules)),
  ...bind(providerRefused, providerAlerts.tellAdmins(store, post.mail)),
  ...bind(providerProbe, probeProvider(store, open_providers)),
  ...bind(providersResumed, wakeWaiting(store, "email_provider")),
  ...bind(providerFeedback, applyFeedback(store)),
  ...bind(suppressionRemoved, removeFromProviders(store, open_providers)),
  ...bind(inboundProcess, processInbound(inbound)),
  ...bind(topicRemoved, removeMembers(store)),
  ...bind(fanOutStart, start({ store, planners })),
  ...bind(fanOutPart, walk({ store, planners })),
  ...bind(fanOutStopped, endWaiting(store)),
  ...bind(webhookResend, resend),
  ...bind(webhookWarning, tellAdmins(store, post.mail)),
  ...bind(passwordForgotten, sendReset(store, post)),
  ...bind(subscriberMerged, moveRest(store)),
  ...bind(subscriberErased, eraseRest({ store, secrets })),
  ...bind(erasedFiles, removeErasedFiles({ store, blobs, inbound_blobs })),
  ...bind(backupCreate, runBackup(store, backups)),
  ...bind(backupFailed, tellOperators(store, post.mail)),
  ...bind(backupLacksFiles, tellOfLackingFiles(store, post.mail)),
  ...bind(purgeProject, {
    run: async ({ id }) => {
      await purgeProjectNow({ store, blobs }, id)
      return {}
    },
  }),
  ...bind(purgeAccount, {
    run: async ({ id }) => {
      await purgeAccountNow({ store, blobs }, id)
      return {}
    },
  }),
})
