import { and, asc, eq, gt, inArray } from "drizzle-orm"
import { changeUnclaimed } from "../jobs/claims"
import type { JobHandler } from "../jobs/jobs"
import type { Store } from "../store/store"
import { messageRows } from "./pipeline"
import { stopAll } from "./settle"
import { messages } from "./tables"

const AT_ONCE = 100

interface RemovedDomain {
  project_id: string
  domain: string
}

/** Lets everything fail that still waits to be sent from a domain that its project has deleted. */
export const failMailFrom = (
  store: Store,
  rules: { sending_domains: ReadonlySet<string> },
): JobHandler<RemovedDomain> => ({
  async run(removed) {
    if (rules.sending_domains.has(removed.domain)) return {} // the operator's word stays
    for (let after: string | undefined = ""; after !== undefined; ) {
      after = await failSome(store, removed, after)
    }
    return {}
  },
})

/** What is on its way right now is left to its attempt. Returns the last id, or that there is none. */
async function failSome(store: Store, { project_id, domain }: RemovedDomain, after: string) {
  const waiting = and(
    eq(messages.project_id, project_id),
    eq(messages.status, "queued"),
    eq(messages.sender_domain, domain),
    gt(messages.id, after),
  )
  const found = store.read.select({ id: messages.id }).from(messages).where(waiting)
  const ids = (await found.orderBy(asc(messages.id)).limit(AT_ONCE)).map(({ id }) => id)
  if (ids.length === 0) return undefined
  await changeUnclaimed(store, messageRows, ids, async (tx, unclaimed) => {
    const still = and(waiting, inArray(messages.id, unclaimed))
    const rows = await tx.select().from(messages).where(still).orderBy(asc(messages.id))
    await stopAll(tx, rows, { status: DELETED, text: `The domain ${domain} was deleted.` })
  })
  return ids.at(-1)
}

const DELETED = "domain_not_verified"
