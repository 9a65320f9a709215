import { log } from "./core/log"
import * as idempotency from "./http/idempotency"
import { purgeWindows } from "./http/shared-windows"
import { purgeEnded } from "./long-jobs/long-jobs"
import { purgeSessions } from "./session/tidy"
import { purgeDead } from "./store/dead-jobs"
import type { Store } from "./store/store"

const PURGE_MILLISECONDS = 60_000

/** Forgets what is past its time, a little at a time, until the returned function is called. */
export function keepTidy(store: Store): () => void {
  const purge = async () => {
    while ((await idempotency.purge(store)) > 0);
    while ((await purgeDead(store)) > 0);
    while ((await purgeSessions(store)) > 0);
    while ((await purgeEnded(store)) > 0);
    await purgeWindows(store)
  }
  const run = () =>
    void purge().catch((error) => log.warn("old rows could not be removed", { error }))
  const timer = setInterval(run, PURGE_MILLISECONDS)
  return () => clearInterval(timer)
}
