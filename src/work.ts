import { applicationDeleted } from "./auth/applications"
import type { AuthParts } from "./auth/auth-parts"
import { newDeviceSeen } from "./auth/new-device"
import { mailNewDevice } from "./auth/new-device-mail"
import { organizationDeleted, removeOrganization } from "./auth/organizations/removed-organizations"
import { sendPasswordReset, userPasswordForgotten } from "./auth/password-reset"
import { removeApplication } from "./auth/removed-applications"
import { removeDeleted, usersDeleted } from "./auth/removed-users"
import { chooseByNumber, numberChoice } from "./consents/number-choice"
import type { Blobs } from "./core/blobs"
import type { Settings } from "./core/config"
import type { Disk } from "./core/disk"
import type { Secrets } from "./core/secrets"
import type { DeviceFates } from "./devices/device-fates"
import { type CheckParts, runCheck } from "./domains/check-job"
import { domainCheck } from "./domains/check-schedule"
import { domainRemoved } from "./domains/domains"
import type { SendRules } from "./emails/prepare"
import type { MessageWatchers } from "./events/message-watchers"
import { fanOutPart, fanOutStart, fanOutStopped } from "./fan-out/fan-out"
import { endWaiting } from "./fan-out/stopped"
import { start, walk } from "./fan-out/walk"
import { passwordForgotten, sendReset } from "./identity/password-recovery"
import type { ConsoleMail } from "./identity/system-mail"
import { inboundProcess } from "./inbound/arrived-mail"
import { type ProcessParts, processInbound } from "./inbound/process"
import type { InboxHub } from "./inbox/inbox-hub"
import { inboxMarked, markRest } from "./inbox/mark-all"
import { inboxRemoved, removeInbox } from "./inbox/removed-inbox"
import { wakeInboxes } from "./inbox/waking"
import type { EveryRow } from "./jobs/every"
import type { QueuePauses } from "./jobs/holds"
import { bind, type JobHandlers, jobRows } from "./jobs/jobs"
import { BEAT_MILLISECONDS, type WorkNode } from "./jobs/work-nodes"
import { complain, mailboxComplain } from "./mailbox/simulator"
import { messageRows } from "./messages/pipeline"
import type { Planners } from "./messages/planner"
import { applyFeedback } from "./messages/provider-feedback"
import { probeProvider, wakeStranded, wakeWaiting } from "./messages/provider-jobs"
import { failMailFrom } from "./messages/removed-domain-mail"
import {
  backupCreate,
  backupFailed,
  backupLacksFiles,
  failureLetter,
  lackingLetter,
  mailOperators,
  requestDueBackup,
  runBackup,
} from "./operations/backup/backup-job"
import type { Backups } from "./operations/backup/create-backup"
import { raiseMark } from "./operations/database-mark"
import {
  type ErasureParts,
  eraseRest,
  removeErasedFiles,
  subscriberErased,
} from "./operations/erase-subscriber"
import { erasedFiles } from "./operations/erased-rows"
import { masterKeyFollower } from "./operations/master-key"
import { moveRest, subscriberMerged } from "./operations/merged-messages"
import { fileWatch, type NightlyCheck } from "./operations/nightly-check"
import { type PurgeParts, purgeAccountNow, purgeProjectNow } from "./operations/purge"
import { namedByMessages } from "./operations/table-lives"
import { tidyRounds } from "./operations/tidy"
import * as providerAlerts from "./providers/alerts"
import { providerFeedback } from "./providers/callbacks"
import { providerChanged, tellChange } from "./providers/change-mail"
import { providerProbe, providerRefused, providersResumed } from "./providers/health"
import type { OpenProviders } from "./providers/open-providers"
import { assessAll } from "./reputation/evaluate"
import { releaseStranded } from "./reputation/gate"
import * as ownerMail from "./reputation/owner-mail"
import type { RequestLog } from "./request-log/request-log"
import { receiveText } from "./sms/replies"
import type { Store } from "./store/store"
import { removeFromProviders, suppressionRemoved } from "./suppressions/provider-lists"
import { purgeAccount } from "./tenancy/accounts"
import { purgeProject } from "./tenancy/projects"
import { notifyOwners, usageAlert } from "./tenancy/quotas"
import type { Meter } from "./tenancy/usage"
import { removeMembers, topicRemoved } from "./topics/topics"
import type { Hits } from "./tracking/hits"
import { deliveryRows } from "./webhooks/delivery-rows"
import { resend, webhookResend } from "./webhooks/resend"
import { notifyAdmins, webhookWarning } from "./webhooks/status"

interface JobParts extends PurgeParts, ErasureParts {
  auth: AuthParts
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
export const ALLOWED_WHILE_HELD: readonly string[] = [
  domainCheck,
  providerProbe,
  providersResumed,
  topicRemoved,
  inboxMarked,
  inboxRemoved,
  subscriberMerged,
  subscriberErased,
  erasedFiles,
  applicationDeleted,
  usersDeleted,
  organizationDeleted,
  backupCreate,
  purgeProject,
  purgeAccount,
].map(({ name }) => name)

/**
 * Every kind of background job there is, and what does it. Messages and deliveries are work of their
 * own tables.
 */
export const jobHandlers = (
  { store, secrets, blobs, inbound_blobs, planners, open_providers, ...parts }: JobParts,
  post: ConsoleMail,
): JobHandlers => ({
  ...bind(mailboxComplain, complain(store)),
  ...bind(usageAlert, notifyOwners(store, post.mail)),
  ...bind(ownerMail.reputationAlert, ownerMail.notifyOwners(store, post.mail)),
  ...bind(domainCheck, runCheck(parts.domains)),
  ...bind(domainRemoved, failMailFrom(store, parts.rules)),
  ...bind(providerRefused, providerAlerts.notifyAdmins(store, post.mail)),
  ...bind(providerChanged, tellChange(store, post.mail)),
  ...bind(providerProbe, probeProvider(store, open_providers)),
  ...bind(providersResumed, wakeWaiting(store)),
  ...bind(providerFeedback, applyFeedback(store, receiveText)),
  ...bind(numberChoice, chooseByNumber(store, secrets)),
  ...bind(suppressionRemoved, removeFromProviders(store, open_providers)),
  ...bind(inboundProcess, processInbound(parts.inbound)),
  ...bind(topicRemoved, removeMembers(store)),
  ...bind(applicationDeleted, removeApplication(store)),
  ...bind(usersDeleted, removeDeleted(store)),
  ...bind(organizationDeleted, removeOrganization(store)),
  ...bind(newDeviceSeen, mailNewDevice(parts.auth)),
  ...bind(userPasswordForgotten, sendPasswordReset(parts.auth)),
  ...bind(inboxMarked, markRest(store)),
  ...bind(inboxRemoved, removeInbox(store, namedByMessages)),
  ...bind(fanOutStart, start({ store, planners })),
  ...bind(fanOutPart, walk({ store, planners })),
  ...bind(fanOutStopped, endWaiting(store)),
  ...bind(webhookResend, resend),
  ...bind(webhookWarning, notifyAdmins(store, post.mail)),
  ...bind(passwordForgotten, sendReset(store, post)),
  ...bind(subscriberMerged, moveRest(store)),
  ...bind(subscriberErased, eraseRest({ store, secrets })),
  ...bind(erasedFiles, removeErasedFiles({ store, blobs, inbound_blobs })),
  ...bind(backupCreate, runBackup(store, parts.backups)),
  ...bind(backupFailed, mailOperators(store, post.mail, failureLetter)),
  ...bind(backupLacksFiles, mailOperators(store, post.mail, lackingLetter)),
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

interface RecurringParts {
  store: Store
  settings: Settings
  secrets: Secrets
  blobs: Blobs
  inbound_blobs: Blobs
  disk: Disk
  node: WorkNode
  queues: QueuePauses
  watching: MessageWatchers
  inbox_hub: InboxHub
  requests: RequestLog
  hits: Hits
  device_fates: DeviceFates
  meter: Meter
  nightly: NightlyCheck
}

const SECOND = 1000
const MINUTE = 60 * SECOND

/** Everything that comes again and again in a running server. Nothing else has a timer of its own. */
export function recurringWork(parts: RecurringParts): EveryRow[] {
  const { store, settings, secrets, node, queues, watching, requests, hits, meter } = parts
  const { disk, nightly, inbox_hub, device_fates } = parts
  const own = (name: string, every_ms: number, run: EveryRow["run"]): EveryRow => ({
    ...{ name, every_ms, run },
    by: "node",
  })
  const shared = (name: string, every_ms: number, run: EveryRow["run"]): EveryRow => ({
    ...own(name, every_ms, run),
    by: "all",
  })
  const between_nodes = [
    own("life sign", BEAT_MILLISECONDS, () => node.beat([messageRows, deliveryRows, jobRows])),
    own("watched projects", 10 * SECOND, watching.wantAgain),
    own("inboxes of other nodes", SECOND, () => inbox_hub.poll()),
    own("master key of other nodes", 5 * SECOND, masterKeyFollower({ store, secrets })),
  ]
  const { path } = store.file ?? {}
  const missed = path && fileWatch(path, (error) => void disk.failed(error))
  return [
    ...(missed ? [own("database file", SECOND, missed)] : []),
    ...(store.isAlone ? [] : between_nodes),
    own("subscribers with a socket", 2 * SECOND, () => inbox_hub.look()),
    own("paused queues", SECOND, () => queues.follow()),
    own("request log", SECOND / 2, requests.writeRipe),
    own("openings and clicks", SECOND / 2, hits.writeRipe),
    own("results of devices", SECOND, device_fates.writeRipe),
    own("counted requests", 5 * SECOND, meter.flush),
    own("database mark", MINUTE, () => raiseMark(store, settings.data_dir)),
    own("nightly check", MINUTE, nightly.look),
    own("retention", MINUTE, tidyRounds(store, settings, parts)),
    shared("inboxes", SECOND, (signal) => wakeInboxes(store, namedByMessages, signal)),
    shared("stranded messages", MINUTE, () => wakeStranded(store)),
    shared("scheduled backup", MINUTE, () => requestDueBackup(store, settings)),
    shared("reputation", MINUTE, async () => {
      await assessAll(store)
      await releaseStranded(store, messageRows)
    }),
  ]
}
