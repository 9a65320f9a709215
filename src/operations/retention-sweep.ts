import { asc, gt } from "drizzle-orm"
import type { Settings } from "../core/config"
import { nextTurn, secondsFromNow, today } from "../core/time"
import type { FeedPosition } from "../events/feed"
import { type MessagesWithContents, purgeFanOuts } from "../fan-out/fan-out-retention"
import { PROJECT_DEFAULTS, withDefaults } from "../identity/caller"
import { projects, type Retention } from "../identity/tables"
import { purgeInbound } from "../inbound/inbound-retention"
import { purgeContents } from "../inbox/kept-contents"
import { AUDIENCE_CHANNELS } from "../lib/preferences"
import { purgeMailbox } from "../mailbox/mailbox"
import { expireContents, removeMessages } from "../messages/message-retention"
import { EXPIRING_CHANNELS } from "../messages/status-changes"
import { inSteps } from "../store/in-steps"
import type { Store } from "../store/store"
import { hasEndpoints, nextEndpoint, purgeDeliveries, purgeEvents } from "../webhooks/retention"
import { namedByMessages } from "./table-lives"

/** Projects and endpoints of one call: the others come with the next ones. */
const AT_ONCE = 200

const DAY_SECONDS = 86_400

/** The operator's limits: no project keeps its events and deliveries for longer. */
type Ceilings = Pick<Settings, "retention.deliveries" | "retention.events">

/** How far the sweep got; a restart begins anew. */
interface Progress {
  project_id: string
  webhook_id: string
  /** By project and channel: no message up to this id has a content. */
  contents: Map<string, string>
  needing_texts: MessagesWithContents
  day: string
}

/**
 * Acts upon the setting `retention` of the projects: each call goes through the next 200 of them, some
 * rows in a transaction.
 */
export function retentionSweeper(
  store: Store,
  ceilings: Ceilings,
): (signal?: AbortSignal) => Promise<void> {
  const progress: Progress = {
    ...{ project_id: "", webhook_id: "", day: today() },
    ...{ contents: new Map(), needing_texts: new Map() },
  }
  return async (signal) => {
    const sweep: Sweep = { store, ceilings, signal, all: (step) => inSteps(step, signal) }
    // What was too young, or scheduled, when the sweep came by is found on another day.
    if (progress.day !== today()) {
      progress.contents.clear()
      progress.needing_texts.clear()
    }
    progress.day = today()
    await sweepProjects(sweep, progress)
    await sweepDeliveries(sweep, progress)
    // Mail to the instance itself that is not processed belongs to no project.
    await sweep.all(() => purgeInbound(store, "", daysAgo(PROJECT_DEFAULTS.retention.inbound_days)))
  }
}

const daysAgo = (days: number) => secondsFromNow(-days * DAY_SECONDS)

interface Sweep {
  store: Store
  ceilings: Ceilings
  signal: AbortSignal | undefined
  /** Repeats a step until nothing is left for it. */
  all: (step: () => Promise<number>) => Promise<void>
}

async function sweepProjects(sweep: Sweep, progress: Progress) {
  const { store, ceilings } = sweep
  const { id, settings } = projects
  const next = store.read.select({ id, settings }).from(projects)
  const rows = await next.where(gt(id, progress.project_id)).orderBy(asc(id)).limit(AT_ONCE)
  for (const project of rows) {
    await sweepProject(sweep, project.id, keptBy(project.settings, ceilings), progress)
    await nextTurn() // requests run between two projects, also where nothing is old
  }
  progress.project_id = rows.length < AT_ONCE ? "" : (rows.at(-1)?.id ?? "")
}

type Stored = (typeof projects.$inferSelect)["settings"]

/** For how many days the rows of a project are kept, by its settings and the operator's limits. */
export function keptBy(settings: Stored, ceilings: Ceilings): Retention {
  const { retention } = withDefaults(settings)
  const least = (days: number, ceiling_ms: number) =>
    Math.min(days, ceiling_ms / 1000 / DAY_SECONDS)
  const webhook_deliveries_days = least(
    retention.webhook_deliveries_days,
    ceilings["retention.deliveries"],
  )
  const events_days = least(retention.events_days, ceilings["retention.events"])
  return { ...retention, webhook_deliveries_days, events_days }
}

async function sweepProject(
  { store, signal, all }: Sweep,
  project_id: string,
  kept: Retention,
  { contents, needing_texts }: Progress,
) {
  /** Repeats a step that resolves with how far it came, until it comes no further. */
  const walk = async (step: (after: string) => Promise<string | undefined>) => {
    let after = ""
    await all(async () => {
      const last = await step(after)
      after = last ?? after
      return last === undefined ? 0 : 1
    })
  }
  for (const channel of EXPIRING_CHANNELS) {
    const place = `${project_id} ${channel}`
    const bodies = { project_id, channel, before: daysAgo(kept.bodies_days) }
    await all(async () => {
      const last = await expireContents(store, bodies, contents.get(place) ?? "", signal)
      if (last !== undefined) contents.set(place, last)
      return last === undefined ? 0 : 1
    })
  }
  for (const channel of AUDIENCE_CHANNELS) {
    const old = { project_id, channel, before: daysAgo(kept.messages_days) }
    await walk((after) => removeMessages(store, old, after, namedByMessages))
  }
  await walk((after) => purgeContents(store, project_id, daysAgo(kept.messages_days), after))
  const ages = {
    bodies_before: daysAgo(kept.bodies_days),
    messages_before: daysAgo(kept.messages_days),
  }
  await purgeFanOuts(store, project_id, ages, needing_texts)
  await all(() => purgeInbound(store, project_id, daysAgo(kept.inbound_days)))
  // What the embedded mailbox took is a content, too.
  await all(() => purgeMailbox(store, project_id, daysAgo(kept.bodies_days)))
  // A delivery without its event would have nothing to show, and nothing to send again.
  const least_days = (await hasEndpoints(store.read, project_id)) ? kept.webhook_deliveries_days : 0
  const events_days = Math.max(kept.events_days, least_days)
  const old_events = { project_id, before: daysAgo(events_days) }
  let place: FeedPosition | undefined
  await all(async () => {
    const last = await purgeEvents(store, old_events, place)
    place = last ?? place
    return last === undefined ? 0 : 1
  })
}

/** By endpoint, also by one that was deleted: its deliveries have no other index. */
async function sweepDeliveries({ store, ceilings, all }: Sweep, progress: Progress) {
  for (let looked = 0; looked < AT_ONCE; looked++) {
    const next = await nextEndpoint(store.read, progress.webhook_id)
    progress.webhook_id = next?.webhook_id ?? ""
    if (!next) return
    const days = keptBy(next.settings ?? {}, ceilings).webhook_deliveries_days
    await all(() => purgeDeliveries(store, next.webhook_id, daysAgo(days)))
    await nextTurn()
  }
}
