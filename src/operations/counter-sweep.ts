import { asc, gt } from "drizzle-orm"
import { today } from "../core/time"
import { projects } from "../identity/tables"
import { removeEmpty } from "../store/counters"
import { inSteps } from "../store/in-steps"
import type { Store } from "../store/store"
import { counterOf } from "../subscribers/subscribers"

/** Projects of one call: the others come with the next ones. */
const AT_ONCE = 50

/**
 * Removes the counters of tags that no subscriber has any more. Each call goes through some projects, until
 * all had their turn of the day (UTC).
 */
export function counterSweeper(store: Store, signal?: AbortSignal): () => Promise<void> {
  let [after, day] = ["", ""]
  return async () => {
    if (after === "" && day === today()) return
    day = today()
    const { id } = projects
    const next = store.read.select({ id }).from(projects).where(gt(id, after))
    const rows = await next.orderBy(asc(id)).limit(AT_ONCE)
    for (const project of rows) {
      await inSteps(() => removeEmpty(store, project.id, counterOf("tag")), signal)
    }
    after = rows.length < AT_ONCE ? "" : (rows.at(-1)?.id ?? "")
  }
}
