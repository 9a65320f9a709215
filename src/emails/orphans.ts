import { and, asc, eq, gt, inArray, ne } from "drizzle-orm"
import type { JobHandler } from "../jobs/job-handler"
import { LEASED } from "../jobs/queue"
import { jobs } from "../jobs/tables"
import { abandon } from "../messages/settle"
import { messages } from "../messages/tables"
import { held } from "../store/locks"
import type { Store, Tx } from "../store/store"
import type { SendRules } from "./prepare"

/** Messages of one transaction: others are to get their turn between. */
const AT_ONCE = 100

type Rules = Pick<SendRules, "sending_domains">

interface Removed {
  project_id: string
  domain: string
}

/** Lets everything fail that still waits to be sent from a domain that its project has deleted. */
export const failMailFrom = (store: Store, rules: Rules): JobHandler<Removed> => ({
  async run(removed) {
    if (rules.sending_domains.has(removed.domain)) return {} // the operator's word stays
    let after = ""
    for (;;) {
      const last = await store.tx((tx) => failSome(tx, removed, after))
      if (last === undefined) return {}
      after = last
    }
  },
})

/** What is on its way right now is left to its attempt. Returns the last id, or that there is none. */
async function failSome(tx: Tx, { project_id, domain }: Removed, after: string) {
  const waiting = and(
    eq(messages.project_id, project_id),
    eq(messages.status, "queued"),
    eq(messages.channel, "email"),
    eq(messages.sender_domain, domain),
    gt(messages.id, after),
  )
  const found = tx.select({ id: messages.id }).from(messages).where(waiting)
  const ids = (await found.orderBy(asc(messages.id)).limit(AT_ONCE)).map(({ id }) => id)
  if (ids.length === 0) return undefined
  // The jobs first, as a claim does it, or the two might wait for each other.
  await tx.delete(jobs).where(and(inArray(jobs.id, ids), ne(jobs.state, LEASED)))
  const still = and(waiting, inArray(messages.id, ids)) // a claim may have been quicker
  const rows = await held(tx.select().from(messages).where(still).orderBy(asc(messages.id)))
  for (const row of rows) await abandon(tx, row, DELETED, `The domain ${domain} was deleted.`)
  return ids.at(-1)
}

const DELETED = "domain_not_verified"
