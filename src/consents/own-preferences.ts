import { Problems } from "../core/errors"
import type { Caller } from "../identity/caller"
import { AUDIENCE_CHANNELS, type AudienceChannel, byChannel } from "../lib/preferences"
import type { Reader, Tx } from "../store/store"
import { choose } from "../subscribers/chosen-preferences"
import { find, findForUpdate, type SubscriberRow } from "../subscribers/find-subscriber"
import {
  mergedPreferences,
  type PreferencesChange,
  requireKnown,
} from "../subscribers/preferences-input"
import type { ConsentSecrets } from "./consents"
import { linked, wantsChannel, wantsKind } from "./linked-subscribers"
import {
  bareKind,
  endedScopes,
  nameOf,
  offeredKinds,
  type Subscription,
} from "./subscription-kinds"
import { chooseFor } from "./unsubscribe"

/** A subscriber in its project, as the guard let it in. */
type OwnCaller = Pick<Caller, "account_id" | "project_id" | "ip"> & {
  subscriber_id: string
  project_settings: Pick<Caller["project_settings"], "default_preferences">
}

/**
 * What a subscriber may choose, each with what holds now: its channels, the public categories, and the public topics that
 * it follows. What the project keeps private is not among them, and neither are workflows.
 */
export async function ownPreferences(db: Reader, caller: OwnCaller) {
  const row = await find(db, caller.project_id, caller.subscriber_id)
  const { person, offered } = await offeredTo(db, caller, row)
  const valuesOf = (channel: AudienceChannel, type: "category" | "topic") =>
    offered[channel].flatMap(({ scope, is_subscribed }) =>
      scope.type === type && scope.key !== null ? [[scope.key, is_subscribed] as const] : [],
    )
  const topics: Record<string, Partial<Record<AudienceChannel, boolean>>> = {}
  for (const channel of AUDIENCE_CHANNELS) {
    for (const [key, value] of valuesOf(channel, "topic")) {
      topics[key] = { ...topics[key], [channel]: value }
    }
  }
  const channel = (name: AudienceChannel) => ({
    enabled: wantsChannel(person, name),
    categories: Object.fromEntries(valuesOf(name, "category")),
  })
  const quiet_hours = row.preferences?.quiet_hours ?? null
  return { ...byChannel(channel), topics, workflows: {}, quiet_hours }
}

/**
 * Merges what a subscriber chooses of what it is offered. A yes also ends what an unsubscribing left behind. Throws 422
 * for any other category or topic, as for one that is not there.
 */
export async function chooseOwn(
  tx: Tx,
  secrets: ConsentSecrets,
  caller: OwnCaller,
  { workflows: _, ...change }: PreferencesChange,
): Promise<void> {
  const row = await findForUpdate(tx, caller.project_id, caller.subscriber_id)
  const { person, offered, ended } = await offeredTo(tx, caller, row)
  requireOffered(change, offered)
  const way = { source: "api", proof: "subscriber-inbox", ip: caller.ip } as const
  for (const { channel, kind } of yesesIn(change, offered)) {
    const { type, key } = kind?.scope ?? { type: "category", key: "" }
    const has_row = type === "category" && person.ended[channel].has(key ?? "")
    if (!has_row && !(kind && ended.has(placeOf(channel, kind)))) continue
    const { account_id, project_id, project_settings: settings } = caller
    const owner = { account_id, project_id, address: row.email ?? "", settings }
    await chooseFor(tx, secrets, owner, [person], { channel, kind, is_wanted: true }, way)
  }
  await choose(tx, caller, person.row, mergedPreferences(person.row.preferences, change))
}

type Offered = Record<AudienceChannel, Subscription[]>

async function offeredTo(db: Reader, caller: OwnCaller, row: SubscriberRow) {
  const { project_id, project_settings } = caller
  const person = await linked(db, row)
  const ended = new Set<string>()
  if (row.email_key !== null) {
    for (const scope of await endedScopes(db, { project_id, address: row.email_key })) {
      ended.add(placeOf("email", bareKind("email", scope)))
    }
  }
  const offered = byChannel((): Subscription[] => [])
  for (const channel of AUDIENCE_CHANNELS) {
    for (const kind of await offeredKinds(db, project_id, channel, person)) {
      const is_wanted = wantsKind(person, kind, project_settings.default_preferences)
      const is_subscribed = is_wanted && !ended.has(placeOf(channel, kind))
      offered[channel].push({ ...kind, is_subscribed })
    }
  }
  return { person, offered, ended }
}

const placeOf = (channel: AudienceChannel, { scope }: Pick<Subscription, "scope">) =>
  `${channel} ${nameOf(scope)}`

function requireOffered(change: PreferencesChange, offered: Offered) {
  const all = AUDIENCE_CHANNELS.flatMap((channel) => offered[channel])
  const keysOf = (type: "category" | "topic") =>
    new Set(all.flatMap(({ scope }) => (scope.type === type ? (scope.key ?? []) : [])))
  const problems = new Problems()
  requireKnown(change, { categories: keysOf("category"), topics: keysOf("topic") }, problems)
  problems.throwIfAny()
}

/** What a change says yes to. Null is the channel itself. */
function yesesIn(change: PreferencesChange, offered: Offered) {
  return AUDIENCE_CHANNELS.flatMap((channel) => {
    const { enabled, categories } = change[channel] ?? {}
    const kinds = offered[channel].filter(({ scope: { type, key } }) => {
      const name = key ?? ""
      return (type === "category" ? categories?.[name] : change.topics?.[name]?.[channel]) === true
    })
    return [...(enabled === true ? [null] : []), ...kinds].map((kind) => ({ channel, kind }))
  })
}
