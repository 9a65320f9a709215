import { purgeAuditLog } from "../audit-log/audit-log"
import type { Blobs } from "../core/blobs"
import type { Settings } from "../core/config"
import type { Disk } from "../core/disk"
import { secondsFromNow, today } from "../core/time"
import { purgePolicies } from "../emails/email-context"
import * as idempotency from "../http/idempotency"
import { purgeWindows } from "../http/rate-limits"
import { purgeEndedKeys } from "../identity/api-keys"
import { purgeSessions } from "../identity/sessions"
import { inboundFiles } from "../inbound/tables"
import { purgeDead } from "../jobs/jobs"
import { purgeEnded } from "../jobs/long-jobs"
import { messageFiles } from "../messages/tables"
import { purgeReleased } from "../reputation/complaint-holds"
import { purgeHours } from "../reputation/hour-counts"
import { purgeRequestLog } from "../request-log/request-log"
import { inSteps } from "../store/in-steps"
import type { Store } from "../store/store"
import { purgeGeneralBounces, purgeSoftFailures } from "../suppressions/soft-failures"
import { purgeExpired } from "../suppressions/suppressions"
import { purgeInvitations } from "../tenancy/invitations"
import { purgeUsage } from "../tenancy/usage"
import { purgeWebhookHours } from "../webhooks/hours"
import { expireHeld } from "../webhooks/retention"
import { counterSweeper } from "./counter-sweep"
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
  await all(() => idempotency.purge(store))
  await all(() => purgeDead(store))
  await all(() => purgeSessions(store))
  await all(() => purgeEnded(store))
  await all(() => expireHeld(store))
  await all(() => purgePolicies(store))
  await purgeWindows(store)
  await all(() => purgeHours(store))
  await all(() => purgeWebhookHours(store))
  await all(() => purgeExpired(store))
  await all(() => purgeSoftFailures(store))
  await all(() => purgeGeneralBounces(store))
}

/** Once a day, because their walks are long or their rows are few. */
async function purgeLongLived(store: Store, settings: Settings, all: All) {
  const { "retention.audit_log": audit_ms } = settings
  if (audit_ms !== null) await all(() => purgeAuditLog(store, before(audit_ms)))
  await all(() => purgeInvitations(store))
  await all(() => purgeEndedKeys(store))
  await all(() => purgeReleased(store))
  await purgeUsage(store)
}
