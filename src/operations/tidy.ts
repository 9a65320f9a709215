import type { Blobs } from "../core/blobs"
import type { Settings } from "../core/config"
import { log } from "../core/log"
import { secondsFromNow } from "../core/time"
import { purgePolicies } from "../emails/email-context"
import { wakeStranded } from "../emails/provider-jobs"
import * as idempotency from "../http/idempotency"
import { purgeWindows } from "../http/rate-limits"
import { purgeSessions } from "../identity/sessions"
import { purgeInbound } from "../inbound/inbound-retention"
import { inboundFiles } from "../inbound/tables"
import { purgeDead } from "../jobs/jobs"
import { purgeEnded } from "../jobs/long-jobs"
import { messageFiles } from "../messages/tables"
import { purgeHours } from "../reputation/hour-counts"
import { purgeRequestLog } from "../request-log/request-log"
import type { Store } from "../store/store"
import { purgeExpired } from "../suppressions/expiry"
import { purgeSoftFailures } from "../suppressions/soft-failures"
import { expireHeld, purgeDeliveries, purgeEvents } from "../webhooks/retention"
import { fileSweeper } from "./file-sweep"

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
  const before = (kept_ms: number) => secondsFromNow(-kept_ms / 1000)
  const purge = async () => {
    while ((await idempotency.purge(store)) > 0);
    while ((await purgeDead(store)) > 0);
    while ((await purgeSessions(store)) > 0);
    while ((await purgeEnded(store)) > 0);
    while ((await expireHeld(store)) > 0);
    while ((await purgePolicies(store)) > 0);
    const { "retention.deliveries": deliveries, "retention.events": events } = settings
    while ((await purgeDeliveries(store, before(deliveries))) > 0);
    // A delivery without its event would have nothing to show, and nothing to send again.
    while ((await purgeEvents(store, before(Math.max(events, deliveries)))) > 0);
    while ((await purgeRequestLog(store, before(settings["retention.request_log"]))) > 0);
    await purgeWindows(store)
    while ((await purgeHours(store)) > 0);
    while ((await purgeExpired(store)) > 0);
    while ((await purgeSoftFailures(store)) > 0);
    while ((await purgeInbound(store)) > 0);
    for (const sweep of sweeps) await sweep()
  }
  const run = () => {
    void wakeStranded(store).catch((error) => log.warn("held mail could not be checked", { error }))
    void purge().catch((error) => log.warn("old rows could not be removed", { error }))
  }
  const timer = setInterval(run, PURGE_MILLISECONDS)
  return () => clearInterval(timer)
}
