import type { Blobs } from "../core/blobs"
import type { Settings } from "../core/config"
import { log } from "../core/log"
import { secondsFromNow } from "../core/time"
import { purgePolicies } from "../emails/email-context"
import { wakeStranded } from "../emails/provider-jobs"
import * as idempotency from "../http/idempotency"
import { purgeWindows } from "../http/rate-limits"
import { purgeSessions } from "../identity/sessions"
import { inboundFiles } from "../inbound/tables"
import { purgeDead } from "../jobs/jobs"
import { purgeEnded } from "../jobs/long-jobs"
import { messageFiles } from "../messages/tables"
import { purgeHours } from "../reputation/hour-counts"
import { purgeRequestLog } from "../request-log/request-log"
import type { Store } from "../store/store"
import { purgeExpired } from "../suppressions/expiry"
import { purgeSoftFailures } from "../suppressions/soft-failures"
import { expireHeld } from "../webhooks/retention"
import { fileSweeper } from "./file-sweep"
import { retentionSweeper } from "./retention-sweep"

const PURGE_MILLISECONDS = 60_000

/** Forgets what is past its time, a little at a time, until the returned function is called. */
export function keepTidy(
  store: Store,
  settings: Settings,
  { blobs, inbound_blobs }: { blobs: Blobs; inbound_blobs: Blobs },
): () => void {
  const sweeps = [
    fileSweeper(store, blobs, messageFiles),
    fileSweeper(store, inbound_blobs, inboundFiles),
  ]
  const sweepRetention = retentionSweeper(store, settings)
  const before = (kept_ms: number) => secondsFromNow(-kept_ms / 1000)
  const purge = async () => {
    while ((await idempotency.purge(store)) > 0);
    while ((await purgeDead(store)) > 0);
    while ((await purgeSessions(store)) > 0);
    while ((await purgeEnded(store)) > 0);
    while ((await expireHeld(store)) > 0);
    while ((await purgePolicies(store)) > 0);
    while ((await purgeRequestLog(store, before(settings["retention.request_log"]))) > 0);
    await purgeWindows(store)
    while ((await purgeHours(store)) > 0);
    while ((await purgeExpired(store)) > 0);
    while ((await purgeSoftFailures(store)) > 0);
    await sweepRetention()
    for (const sweep of sweeps) await sweep()
  }
  let is_purging = false
  const run = () => {
    void wakeStranded(store).catch((error) => log.warn("held mail could not be checked", { error }))
    if (is_purging) return // much is past its time, and goes on from here
    is_purging = true
    void purge()
      .catch((error) => log.warn("old rows could not be removed", { error }))
      .finally(() => {
        is_purging = false
      })
  }
  const timer = setInterval(run, PURGE_MILLISECONDS)
  return () => clearInterval(timer)
}
