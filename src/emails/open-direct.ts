import { and, eq, inArray, lt } from "drizzle-orm"
import type { Settings } from "../core/config"
import { resolver } from "../core/dns"
import { log } from "../core/log"
import { now } from "../core/time"
import { deferAll, type MessagesOf, type NextSlot } from "../messages/defer"
import type { Store } from "../store/store"
import { direct } from "./providers/direct"
import type { EmailProvider } from "./providers/provider"
import { smtpSchedule } from "./schedule"
import type { ConcurrencyLimit, DeniedBacklog } from "./smtp/destination-limits"
import type { KeptPolicy, PolicyStore } from "./smtp/mta-sts"
import { mtaStsPolicies } from "./tables"

/** Delivery to the recipients' own mail servers, as the settings want it. */
export const openDirect = (
  settings: Settings,
  store: Store,
  limit: ConcurrencyLimit,
): EmailProvider =>
  direct({
    dns: resolver({ servers: settings["dns.servers"] }),
    policies: policyStore(store),
    port: settings["delivery.mx_port"],
    per_domain: settings["delivery.per_domain"],
    concurrency: settings["delivery.concurrency"],
    limit,
    allow_private: settings["delivery.allow_private"],
    ehlo_name: settings["delivery.ehlo_name"] ?? undefined,
    onBacklog: deferBacklogs(store, ({ destination }) => ({ domain: destination })),
    schedule: smtpSchedule(settings["delivery.retry.max_age"] / 1000),
  })

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
