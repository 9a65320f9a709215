import { asc, eq, gt } from "drizzle-orm"
import { today } from "../core/time"
import { accounts, projects } from "../identity/tables"
import { limitsOf } from "../plans/plans"
import { storedTotal } from "../plans/stored-bytes"
import { removeEmpty } from "../store/counters"
import { inSteps } from "../store/in-steps"
import type { Store } from "../store/store"
import { counterOf } from "../subscribers/subscribers"
import { forgetToldShare } from "../tenancy/stored-share"

/** Projects of one call: the others come with the next ones. */
const AT_ONCE = 50

/**
 * Removes the counters of tags that no subscriber has any more, and forgets what owners were told of stored
 * bytes that are gone. Each call goes through some projects, until
 * all had their turn of the day (UTC).
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
