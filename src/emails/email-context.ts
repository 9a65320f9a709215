import { and, asc, eq, inArray, lt, lte } from "drizzle-orm"
import type { Settings } from "../core/config"
import { log } from "../core/log"
import { millis, millisFrom, now } from "../core/time"
import { inFlightOf } from "../jobs/in-flight"
import { DeferredError, PRIORITIES } from "../jobs/work-item"
import { isReady } from "../jobs/work-rows"
import { domainOf } from "../lib/address"
import { ANNOUNCED, announce, type Message } from "../messages/status-changes"
import { type ChannelName, messages } from "../messages/tables"
import type { PermitSource, ProviderPermit } from "../providers/failover"
import type { Outcome } from "../providers/provider"
import type { ConfigRow } from "../providers/tables"
import { short } from "../store/columns"
import { removeSome } from "../store/rows"
import type { Reader, Store } from "../store/store"
import { type EmailContext, smtpSchedule } from "./providers/provider"
import {
  ConcurrencyLimit,
  type DeniedBacklog,
  type DestinationFeedback,
  isDenied,
  PerDestinationLimits,
  type PerDestinationOptions,
  type PermitDenial,
  type PermitRequest,
} from "./smtp/destination-limits"
import type { KeptPolicy, PolicyStore } from "./smtp/mta-sts"
import { mtaStsPolicies } from "./tables"

/** What email providers need of this process, and the permits that limit them. */
export function emailContext(
  settings: Settings,
  { store, mailbox_port }: Pick<EmailContext, "mailbox_port"> & { store: Store },
) {
  const concurrency = settings["delivery.concurrency"]
  const limit = new ConcurrencyLimit(concurrency)
  const byDomain = deferBacklogs(store, "email", ({ destination }) => ({ domain: destination }))
  const context: EmailContext = {
    settings,
    schedule: smtpSchedule(settings["delivery.retry.max_age"] / 1000),
    mailbox_port,
    direct: { policies: policyStore(store), limit, onBacklog: byDomain },
  }
  return { context, permits: permitsOf(store, "email", limit, concurrency) }
}

/** The permits of one channel: `concurrency` of its messages are delivered at once in all. */
export function permitsOf(
  store: Store,
  channel: ChannelName,
  limit: ConcurrencyLimit,
  concurrency: number,
): ProviderPermits {
  const onBacklog = deferBacklogs(store, channel, ({ project_id }) =>
    project_id === undefined ? undefined : { project_id },
  )
  return new ProviderPermits({ limit, concurrency, onBacklog })
}

/** Defers the messages that wait for a busy destination together, each destination once at a time. */
export function deferBacklogs(
  store: Store,
  channel: ChannelName,
  messagesOf: (backlog: DeniedBacklog) => MessagesOf | undefined,
): (backlog: DeniedBacklog, defer: NextSlot) => void {
  const running = new Set<string>()
  const clear = async (destination: string, waiting: MessagesOf, defer: NextSlot) => {
    try {
      while ((await deferAll(store, channel, waiting, defer)) > 0);
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

const POLICIES_AT_ONCE = 500

/** Forgets policies that are in force no more, some at a time. Returns how many went. */
export function purgePolicies(store: Store): Promise<number> {
  const { domain, expires_at } = mtaStsPolicies
  const old = lt(expires_at, now())
  return removeSome(store, mtaStsPolicies, { id: domain, old, most: POLICIES_AT_ONCE })
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
    await store.tx((tx) => {
      const added = tx.insert(mtaStsPolicies).values(policy)
      return added.onConflictDoUpdate({ target: mtaStsPolicies.domain, set: change })
    })
  },
})

/** So many messages are prefetched for each that is on the wire, and each of them has a permit. */
const PREFETCH = 2

/**
 * Limits what the providers of projects deliver, by the configuration that is asked first. A relay that
 * hangs may not hold every delivery of the instance. A quick one may, unless other projects have mail
 * too. Delivery by MX has limits of its own, by domain. The instance's own provider has none.
 */
export class ProviderPermits implements PermitSource {
  readonly #limits: PerDestinationLimits
  readonly limit: ConcurrencyLimit

  /** `limit` is shared with delivery by MX; `concurrency`: deliveries at once in all. */
  constructor({
    limit,
    concurrency,
    onBacklog,
  }: Pick<PerDestinationOptions, "onBacklog"> & { limit: ConcurrencyLimit; concurrency: number }) {
    this.limit = limit
    const per_destination = PREFETCH * concurrency
    this.#limits = new PerDestinationLimits({ per_destination, concurrency: limit, onBacklog })
  }

  /** Rejects with DeferredError where there is no permit now. */
  async acquire(
    { id, provider, name }: ConfigRow,
    request: Omit<PermitRequest, "name">,
  ): Promise<ProviderPermit> {
    const permit = await this.#limits.acquire(id, { ...request, name: `${provider} (${name})` })
    if (isDenied(permit)) throw waiting(permit)
    let feedback: DestinationFeedback = "nothing"
    return {
      begin: () => {
        permit.began = millis()
      },
      end: (outcome) => {
        if (permit.began === undefined) return
        feedback = outcome && isAnswered(outcome) ? "fine" : "late"
      },
      release: () => this.#limits.release(permit, feedback),
    }
  }
}

const waiting = ({ until, reason }: PermitDenial) =>
  new DeferredError(reason, Math.max(0, (millisFrom(until) - millis()) / 1000))

const isAnswered = (outcome: Outcome): boolean =>
  [outcome, ...outcome.others].some(
    ({ status, fault, reply }) =>
      status !== "retry" || (fault !== "connection" && reply.response !== null),
  )

/** Due messages that are looked at in one go, and how many of them get the same time. */
const AT_ONCE = 2_000
const TOGETHER = 100

/** When the next `count` messages may be tried, and why not now. */
type NextSlot = (count: number) => { until: string; reason: string }

/** Messages that all go to one domain, or those of a project, except what goes to the sandbox. */
type MessagesOf = { domain: string } | { project_id: string }

/**
 * Gives what waits for one domain, or for the provider of one project, at the head of the queue its
 * times, many at a time: claimed one by one, a million messages for a slow server would keep all
 * others waiting. It counts as no attempt.
 * Resolves with how many were deferred; messages with recipients elsewhere are left alone.
 */
export async function deferAll(
  store: Store,
  channel: ChannelName,
  whose: MessagesOf,
  nextSlot: NextSlot,
): Promise<number> {
  let count = 0
  for (const priority of [PRIORITIES.normal, PRIORITIES.bulk]) {
    const ids = await dueFor(store.read, channel, whose, priority)
    const slots = chunks(ids).map((some) => ({ some, ...nextSlot(some.length) }))
    if (slots.length === 0) continue
    await store.tx(async (tx) => {
      for (const { some, until, reason } of slots) {
        const later = { run_at: until, status_reason: short(reason), updated_at: now() }
        const waiting = some.filter((id) => !inFlightOf(tx, "messages")?.has(id))
        const deferred = tx
          .update(messages)
          .set(later)
          .where(and(inArray(messages.id, waiting), isReady))
        for (const message of await deferred.returning(ANNOUNCED)) announce(tx, message, null)
      }
    })
    count += ids.length
  }
  return count
}

async function dueFor(
  db: Reader,
  channel: ChannelName,
  whose: MessagesOf,
  priority: number,
): Promise<string[]> {
  const { id, project_id, sandbox, recipients, run_at } = messages
  const is_due = and(isReady, eq(messages.priority, priority), lte(run_at, now()))
  const rows = await db
    .select({ id, project_id, sandbox, recipients })
    .from(messages)
    .where(and(is_due, eq(messages.channel, channel)))
    .orderBy(asc(run_at), asc(id))
    .limit(AT_ONCE)
  const inFlight = inFlightOf(db, "messages")
  return rows.filter((row) => isOf(whose, row) && !inFlight?.has(row.id)).map((row) => row.id)
}

function isOf(
  whose: MessagesOf,
  row: Pick<Message, "project_id" | "sandbox" | "recipients">,
): boolean {
  if ("project_id" in whose) return row.project_id === whose.project_id && !row.sandbox
  return row.recipients.every(({ email }) => domainOf(email) === whose.domain)
}

const chunks = (ids: string[]): string[][] =>
  Array.from({ length: Math.ceil(ids.length / TOGETHER) }, (_, at) =>
    ids.slice(at * TOGETHER, (at + 1) * TOGETHER),
  )
