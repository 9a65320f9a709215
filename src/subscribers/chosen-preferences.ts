import { and, eq } from "drizzle-orm"
import * as audit from "../audit-log/audit-log"
import { fail } from "../core/errors"
import { now } from "../core/time"
import { emitAll, type NewEvent } from "../events/emit"
import type { Caller } from "../identity/caller"
import { projects } from "../identity/tables"
import {
  AUDIENCE_CHANNELS,
  type AudienceChannel,
  byChannel,
  type ChosenPreferences,
} from "../lib/preferences"
import { forUpdate } from "../store/columns"
import type { Tx } from "../store/store"
import type { SubscriberRow } from "./find-subscriber"
import { subscribers } from "./tables"

/**
 * Stores what a subscriber chose, and emits `subscriber.unsubscribed` and `subscriber.resubscribed` for each
 * channel, category and topic that was ended or begun again. The transaction holds the row.
 */
export async function choose(
  tx: Tx,
  { account_id }: Pick<Caller, "account_id">,
  subscriber: SubscriberRow,
  chosen: ChosenPreferences,
): Promise<void> {
  const before = endedIn(subscriber.preferences)
  const after = endedIn(chosen)
  await tx
    .update(subscribers)
    .set({ preferences: Object.keys(chosen).length === 0 ? null : chosen, updated_at: now() })
    .where(eq(subscribers.id, subscriber.id))
  const told = (type: ToldChoice["type"], { channel, scope }: Ended): ToldChoice => ({
    ...{ account_id, subscriber, type, channel, scope },
  })
  const ended = [...after].filter(([name]) => !before.has(name))
  const begun = [...before].filter(([name]) => !after.has(name))
  await notifyChoices(tx, [
    ...ended.map(([, one]) => told("unsubscribed", one)),
    ...begun.map(([, one]) => told("resubscribed", one)),
  ])
}

interface Ended {
  channel: AudienceChannel
  /** Null: the whole channel. */
  scope: { type: "category" | "topic"; key: string } | null
}

/** Everything that the choices end, by a name of its own. */
function endedIn(chosen: ChosenPreferences | null): Map<string, Ended> {
  const ended: Ended[] = []
  for (const channel of AUDIENCE_CHANNELS) {
    if (chosen?.[channel]?.enabled === false) ended.push({ channel, scope: null })
    for (const [key, wanted] of Object.entries(chosen?.[channel]?.categories ?? {})) {
      if (!wanted) ended.push({ channel, scope: { type: "category", key } })
    }
    for (const [key, entry] of Object.entries(chosen?.topics ?? {})) {
      if (entry[channel] === false) ended.push({ channel, scope: { type: "topic", key } })
    }
  }
  return new Map(ended.map((one) => [JSON.stringify(one), one]))
}

/** Stores what holds for subscribers without a choice. The quiet hours are the setting of that name. */
export async function chooseDefault(
  tx: Tx,
  caller: Caller,
  { quiet_hours, ...chosen }: ChosenPreferences,
): Promise<void> {
  const { account_id, project_id } = caller
  const ours = and(eq(projects.id, project_id), eq(projects.account_id, account_id))
  const [row] = await forUpdate(tx.select().from(projects).where(ours))
  if (!row) return fail("not_found", "There is no such project.")
  const { quiet_hours: _, default_preferences: __, ...others } = row.settings
  const settings = {
    ...others,
    ...(quiet_hours && { quiet_hours }),
    ...(Object.keys(chosen).length > 0 && { default_preferences: chosen }),
  }
  await tx.update(projects).set({ settings, updated_at: now() }).where(ours)
  await audit.record(tx, caller, {
    ...{ account_id, project_id, action: "preferences.updated" },
    target: { type: "project", id: project_id },
    before: changedParts(row.settings),
    after: changedParts(settings),
  })
}

const changedParts = (settings: (typeof projects.$inferSelect)["settings"]) => ({
  quiet_hours: settings.quiet_hours ?? null,
  default_preferences: settings.default_preferences ?? null,
})

/** The names that the project has: choices about others are stored, and not shown. */
interface KnownNames {
  categories: ReadonlySet<string>
  topics: ReadonlySet<string>
}

/** The Preferences record of the contract (43, section 2): every part is there, entries are what was chosen. */
export function shownPreferences(chosen: ChosenPreferences | null, known: KnownNames) {
  const among = <Value>(entries: Record<string, Value> | undefined, names: ReadonlySet<string>) =>
    Object.fromEntries(Object.entries(entries ?? {}).filter(([name]) => names.has(name)))
  const channel = (name: AudienceChannel) => ({
    enabled: chosen?.[name]?.enabled ?? true,
    categories: among(chosen?.[name]?.categories, known.categories),
  })
  return {
    ...byChannel(channel),
    topics: among(chosen?.topics, known.topics),
    workflows: { ...chosen?.workflows },
    quiet_hours: chosen?.quiet_hours ?? null,
  }
}

/** A choice of a subscriber about the messages that it gets. */
interface ToldChoice {
  account_id: string
  subscriber: Pick<SubscriberRow, "id" | "project_id" | "external_id">
  type: "unsubscribed" | "resubscribed"
  channel: AudienceChannel
  /** Null: the whole channel. */
  scope: { type: string; key: string | null } | null
  /** In which way, or why. Default: `api`. */
  reason?: string | null | undefined
}

/** Emits the event of a choice, in the transaction that makes it (contract 30, section 6). */
export const notifyChoice = (tx: Tx, told: ToldChoice): Promise<void> => notifyChoices(tx, [told])

/** As `tellChoice`, for all that one request chooses: that may be thousands. */
async function notifyChoices(tx: Tx, list: ToldChoice[]): Promise<void> {
  if (list.length > 0) await emitAll(tx, list.map(eventOf))
}

function eventOf({ account_id, subscriber, type, channel, scope, reason }: ToldChoice): NewEvent {
  const { id: subscriber_id, project_id, external_id } = subscriber
  const data = {
    ...{ subscriber_id, external_id, channel, scope: scope ?? WHOLE_CHANNEL },
    ...{ reason: reason ?? "api", timestamp: now() },
  }
  return { account_id, project_id, subject_id: subscriber_id, type: `subscriber.${type}`, data }
}

const WHOLE_CHANNEL = { type: "project", key: null }
