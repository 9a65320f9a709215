import { Problems } from "../core/errors"
import { millis, millisFrom } from "../core/time"
import { devicesOf } from "../devices/find-device"

import { AUDIENCE_CHANNELS, type AudienceChannel, type ChosenPreferences } from "../lib/preferences"
import {
  type AskingProject,
  capEnds,
  decideAll,
  type MessageQuery,
} from "../messages/audience-decisions"
import { isReached } from "../push/targets"
import type { Reader } from "../store/store"
import { type AudienceMember, audienceOf } from "../subscribers/audience"
import { knownCategories, requireCategory } from "../subscribers/categories"
import { shownPreferences } from "../subscribers/chosen-preferences"
import type { DecisionReason, SendDecision } from "../subscribers/decision"
import { noSubscriber } from "../subscribers/find-subscriber"
import { type PreferencesChange, requireKnown } from "../subscribers/preferences-input"
import { keysAmong } from "../topics/topics"

/** Whether a message of one channel would reach the subscriber now. */
interface ChannelReach {
  allowed: boolean
  /** Null where nothing is against it. */
  reason: DecisionReason | "no_address" | null
  /** When what waits, or the next message, may leave; null: now, or never by itself. */
  next_allowed_at: string | null
}

/**
 * What the decision would be now for an ordinary message by each channel. Throws 404 for a subscriber that
 * is gone, and 422 for a category that the project does not have.
 */
export async function reachabilityOf(
  db: Reader,
  project: AskingProject,
  subscriber_id: string,
  category: string | null,
): Promise<Record<AudienceChannel, ChannelReach>> {
  await requireCategory(db, project.id, category)
  const subscriber = (await audienceOf(db, project.id, [subscriber_id])).get(subscriber_id)
  if (!subscriber) return noSubscriber()
  const asked = AUDIENCE_CHANNELS.map((channel) => askedOf(subscriber, channel, category))
  const decisions = await decideAll(db, project, asked)
  const reaches = await Promise.all(
    asked.map(async (one, at) => [one.channel, await reachOf(db, project, one, decisions[at])]),
  )
  return Object.fromEntries(reaches)
}

const askedOf = (
  subscriber: AudienceMember,
  channel: AudienceChannel,
  category: string | null,
): MessageQuery => ({
  subscriber,
  channel,
  category,
  address: addressOf(subscriber, channel),
  topic: null,
  stream: "transactional",
  at: millis(),
})

function addressOf(subscriber: AudienceMember, channel: AudienceChannel): string | null {
  if (channel === "email") return subscriber.email_key
  if (channel === "sms") return subscriber.phone
  return null
}

async function reachOf(
  db: Reader,
  project: AskingProject,
  asked: MessageQuery,
  decision: SendDecision | undefined,
): Promise<ChannelReach> {
  if (!decision) throw new Error("a message was not decided")
  const { is_allowed: allowed, reason, deferred_until } = decision
  const has_address = await hasAddress(db, project.id, asked)
  // A row of the table that says no comes first, as for any message.
  if (allowed && !has_address) {
    return { allowed: false, reason: "no_address", next_allowed_at: null }
  }
  const ends = reason === "frequency_cap" ? await afterCap(db, project, asked) : deferred_until
  return { allowed, reason, next_allowed_at: ends }
}

/** The inbox is the subscriber's own. */
async function hasAddress(
  db: Reader,
  project_id: string,
  { channel, address, subscriber }: MessageQuery,
): Promise<boolean> {
  if (channel !== "push") return channel === "in_app" || address !== null
  const theirs = await devicesOf(db, project_id, [subscriber?.external_id ?? ""])
  return theirs.some((device) => isReached(device, false))
}

/** When the next message leaves after the cap lets it through: quiet hours may hold it for longer. */
async function afterCap(
  db: Reader,
  { id, settings }: AskingProject,
  asked: MessageQuery,
): Promise<string | null> {
  const end = await capEnds(db, { id, settings }, asked)
  if (end === null) return null
  const uncapped = { id, settings: { ...settings, frequency_cap: null } }
  const [then] = await decideAll(db, uncapped, [{ ...asked, at: millisFrom(end) }])
  return then?.deferred_until ?? end
}

/** Throws 422 for a category or topic that the project does not have. */
export async function refuseUnknownNames(
  db: Reader,
  project_id: string,
  change: PreferencesChange,
): Promise<void> {
  const problems = new Problems()
  requireKnown(change, await knownNames(db, project_id, Object.keys(change.topics ?? {})), problems)
  problems.throwIfAny()
}

/** Preferences as answers show them: without what is about a category or topic that is gone. */
export const shownNow = async (db: Reader, project_id: string, chosen: ChosenPreferences | null) =>
  shownPreferences(chosen, await knownNames(db, project_id, Object.keys(chosen?.topics ?? {})))

const knownNames = async (db: Reader, project_id: string, topics: string[]) => ({
  categories: new Set((await knownCategories(db, project_id)).keys()),
  topics: await keysAmong(db, project_id, topics),
})
