import { and, eq, inArray, lt } from "drizzle-orm"
import type { Settings } from "../core/config"
import { log } from "../core/log"
import { now } from "../core/time"
import { deferAll, type MessagesOf, type NextSlot } from "../messages/defer"
import type { Store } from "../store/store"
import { ProviderPermits } from "./provider-permits"
import type { EmailContext } from "./providers/provider"
import { smtpSchedule } from "./schedule"
import { ConcurrencyLimit, type DeniedBacklog } from "./smtp/destination-limits"
import type { KeptPolicy, PolicyStore } from "./smtp/mta-sts"
import { mtaStsPolicies } from "./tables"

interface EmailContextParts {
  store: Store
  /** Null where the embedded mailbox does not run. */
  mailbox_port: number | null
}

/** What email providers need of this process, and the permits that limit them. */
export function emailContext(settings: Settings, { store, mailbox_port }: EmailContextParts) {
  const concurrency = settings["delivery.concurrency"]
  const limit = new ConcurrencyLimit(concurrency)
  const byDomain = deferBacklogs(store, ({ destination }) => ({ domain: destination }))
  const byProject = deferBacklogs(store, ({ project_id }) =>
    project_id === undefined ? undefined : { project_id },
  )
  const context: EmailContext = {
    settings,
    schedule: smtpSchedule(settings["delivery.retry.max_age"] / 1000),
    mailbox_port,
    direct: { policies: policyStore(store), limit, onBacklog: byDomain },
  }
  return { context, permits: new ProviderPermits({ limit, concurrency, onBacklog: byProject }) }
}

/** Defers the messages that wait for a busy destination together, each destination once at a time. */
export function deferBacklogs(
  store: Store,
  messagesOf: (backlog: DeniedBacklog) => MessagesOf | undefined,
): (backlog: DeniedBacklog, defer: NextSlot) => void {
  const running = new Set<string>()
  const clear = async (destination: string, waiting: MessagesOf, defer: NextSlot) => {
    try {
      while ((await deferAll(store, waiting, defer)) > 0);
    } catch (error) {
      const where = { domain: destination, error }
      log.warn("waiting messages to a busy domain could not be deferred", where)
    } finally {
      running.delete(destination)
    }
  }
  return (backlog, defer) => {
    const { destination } = backlog
    const waiting = messagesOf(backlog)
    if (!waiting || running.has(destination)) return
    running.add(destination)
    void clear(destination, waiting, defer)
  }
}

const AT_ONCE = 500

/** Forgets policies that are in force no more, some at a time. Returns how many went. */
export async function purgePolicies(store: Store): Promise<number> {
  const { domain, expires_at } = mtaStsPolicies
  const over = lt(expires_at, now())
  const some = await store.read.select({ domain }).from(mtaStsPolicies).where(over).limit(AT_ONCE)
  const names = some.map((one) => one.domain)
  // Renewed meanwhile, it stays.
  const gone = and(inArray(domain, names), over)
  if (names.length > 0) await store.tx((tx) => tx.delete(mtaStsPolicies).where(gone))
  return names.length
}

/** Policies in the database, one a domain. They are public, so they belong to no project. */
export const policyStore = (store: Store): PolicyStore => ({
  async find(domain) {
    const rows = store.read.select().from(mtaStsPolicies)
    const [kept] = await rows.where(eq(mtaStsPolicies.domain, domain))
    return kept
  },
  async keep(policy: KeptPolicy) {
    const { domain, ...change } = policy
    await store.tx((tx) =>
      tx
        .insert(mtaStsPolicies)
        .values(policy)
        .onConflictDoUpdate({ target: mtaStsPolicies.domain, set: change })
        .then(() => undefined),
    )
  },
})
