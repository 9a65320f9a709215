import { asc, eq, gt } from "drizzle-orm"
import { freeOverdueCalls, purgeAiMonths } from "../ai/calls"
import { purgeAuditLog } from "../audit-log/audit-log"
import { purgeSignIns } from "../auth/ended-rows"
import type { Blobs } from "../core/blobs"
import type { Settings } from "../core/config"
import type { Disk } from "../core/disk"
import { secondsFromNow, today } from "../core/time"
import { purgePolicies } from "../emails/email-context"
import * as idempotency from "../http/idempotency"
import { purgeWindows } from "../http/rate-limits"
import { purgeEndedKeys } from "../identity/api-keys"
import { purgeSessions } from "../identity/sessions"
import { accounts, projects } from "../identity/tables"
import { inboundFiles } from "../inbound/tables"
import { purgeChanges, purgeInboxDays } from "../inbox/inbox-retention"
import { purgeTickets } from "../inbox/tickets"
import { purgeDead } from "../jobs/jobs"
import { purgeEnded } from "../jobs/long-jobs"
import { purgeMessageDays } from "../messages/day-counts"
import { messageFiles } from "../messages/tables"
import { limitsOf } from "../plans/plans"
import { storedTotal } from "../plans/stored-bytes"
import { purgePushDays } from "../push/push-retention"
import { purgeReleased } from "../reputation/gate"
import { purgeHours } from "../reputation/hour-counts"
import { purgeRequestLog } from "../request-log/request-log"
import { removeEmpty } from "../store/counters"
import { inSteps } from "../store/in-steps"
import type { Store } from "../store/store"
import { counterOf } from "../subscribers/subscribers"
import { purgeGeneralBounces, purgeSoftFailures } from "../suppressions/soft-failures"
import { purgeExpired } from "../suppressions/suppressions"
import { purgeCountryHours } from "../tenancy/country-limit"
import { purgeInvitations } from "../tenancy/invitations"
import { forgetToldShare } from "../tenancy/stored-share"
import { purgeUsage } from "../tenancy/usage"
import { purgeWebhookHours } from "../webhooks/endpoint-counts"
import { expireHeld } from "../webhooks/retention"
import { noteDatabaseSize } from "./disk-forecast"
import { fileSweeper } from "./file-sweep"
import { giveBack } from "./give-back"
import { retentionSweeper } from "./retention-sweep"
import { tightDiskSweeper } from "./tight-disk"

interface TidyParts {
  blobs: Blobs
  inbound_blobs: Blobs
  disk: Pick<Disk, "free_bytes">
}

/** One call is one round over every table that has an end (`store/life.ts`), a little at a time, until the signal. */
export function tidyRounds(
  store: Store,
  settings: Settings,
  { blobs, inbound_blobs, disk }: TidyParts,
): (signal?: AbortSignal) => Promise<void> {
  const files = fileSweeper(store, blobs, messageFiles)
  const received_files = fileSweeper(store, inbound_blobs, inboundFiles)
  const sweepRetention = retentionSweeper(store, settings)
  const relieveDisk = tightDiskSweeper(store, {
    disk,
    min_free_mb: settings["storage.min_free_mb"],
    sweepFiles: () => files.all(),
  })
  const sweepCounters = counterSweeper(store)
  let day = ""
  return async (signal) => {
    const all: All = (step) => inSteps(step, signal)
    await relieveDisk(signal)
    await purgeShortLived(store, all)
    await all(() => purgeRequestLog(store, before(settings["retention.request_log"])))
    if (day !== today()) await purgeLongLived(store, settings, all)
    day = today()
    await sweepRetention(signal)
    await sweepCounters(signal)
    await files.next()
    await received_files.next()
    await giveBack(store, { signal })
    await noteDatabaseSize(store)
  }
}

const before = (kept_ms: number) => secondsFromNow(-kept_ms / 1000)

type All = (step: () => Promise<number>) => Promise<void>

async function purgeShortLived(store: Store, all: All) {
  await purgeWindows(store)
  const purges = [
    ...[
      idempotency.purge,
      purgeDead,
      purgeSessions,
      purgeSignIns,
      purgeEnded,
      expireHeld,
      purgePolicies,
    ],
    ...[purgeHours, purgeWebhookHours, purgeExpired, purgeSoftFailures, purgeGeneralBounces],
    ...[purgeCountryHours, purgeChanges, purgeTickets, freeOverdueCalls],
  ]
  for (const purge of purges) await all(() => purge(store))
}

/** Once a day, because their walks are long or their rows are few. */
async function purgeLongLived(store: Store, settings: Settings, all: All) {
  const { "retention.audit_log": audit_ms } = settings
  if (audit_ms !== null) await all(() => purgeAuditLog(store, before(audit_ms)))
  for (const purge of [
    ...[
      purgeInvitations,
      purgeEndedKeys,
      purgeReleased,
      purgeMessageDays,
      purgeInboxDays,
      purgePushDays,
    ],
    ...purgeAiMonths,
  ])
    await all(() => purge(store))
  await purgeUsage(store)
}

/** Projects of one call: the others come with the next ones. */
const AT_ONCE = 50

/**
 * Removes the counters of tags that no subscriber has any more, and forgets what owners were told of stored
 * bytes that are gone. Each call goes through some projects, until all had their turn of the day (UTC).
 */
export function counterSweeper(store: Store): (signal?: AbortSignal) => Promise<void> {
  let [after, day] = ["", ""]
  return async (signal) => {
    if (after === "" && day === today()) return
    day = today()
    const { id, account_id } = projects
    const { plan, limits } = accounts
    const owners = store.read.select({ id, plan, limits }).from(projects)
    const next = owners.innerJoin(accounts, eq(accounts.id, account_id)).where(gt(id, after))
    const rows = await next.orderBy(asc(id)).limit(AT_ONCE)
    for (const project of rows) {
      const share = { project_id: project.id, limit_mb: limitsOf(project).stored_mb }
      if ((await storedTotal(store.read, project.id)).told > 0) {
        await store.tx((tx) => forgetToldShare(tx, share))
      }
      await inSteps(() => removeEmpty(store, project.id, counterOf("tag")), signal)
    }
    after = rows.length < AT_ONCE ? "" : (rows.at(-1)?.id ?? "")
  }
}
