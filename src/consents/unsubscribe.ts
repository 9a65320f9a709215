import { now } from "../core/time"
import { emit } from "../events/emit"
import type { AudienceChannel } from "../lib/preferences"
import type { Store, Tx } from "../store/store"
import { notifyChoice } from "../subscribers/chosen-preferences"
import { suppress, unsuppress } from "../suppressions/suppressions"
import { type ConsentSecrets, type NewConsent, recordConsent } from "./consents"
import {
  allowChannel,
  allowKind,
  endChannel,
  endKind,
  type LinkedSubscriber,
  MOST_SHARING,
  type SubscriptionKind,
  subscribersAtForUpdate,
} from "./linked-subscribers"
import { defaultsIn, kindOf } from "./subscription-kinds"
import type { FoundLink, UnsubscribeScope } from "./unsubscribe-links"

export interface UnsubscribeWay {
  source: "page" | "one_click"
  /** What shows that it was so: the request or the received mail. */
  proof: string
  /** Of the person; null where it is not known. */
  ip: string | null
}

type LinkOwner = Pick<FoundLink, "account_id" | "project_id" | "address">

/** With the settings of the project. */
type SettledOwner = LinkOwner & Pick<FoundLink, "settings">

/**
 * Ends mail of one kind to the address of a link: its suppression, the choice of each subscriber with
 * this address, the consent records and the events. A second time changes nothing. Returns whether
 * something changed.
 */
export async function unsubscribe(
  tx: Tx,
  secrets: ConsentSecrets,
  owner: LinkOwner,
  scope: UnsubscribeScope,
  way: UnsubscribeWay,
): Promise<boolean> {
  const { project_id, address } = owner
  const channel = "email"
  const people = await subscribersAtForUpdate(tx, owner)
  const added = await suppress(tx, project_id, {
    ...{ channel, address, scope },
    ...{ reason: "unsubscribe", origin: "page" },
  })
  const changed = await changedOf(people, (one) => endKind(tx, one, { channel, scope }, way.source))
  if (!added && changed.length === 0) return false
  const all = { people: added ? people : changed, subject_id: added?.id ?? null }
  await recordAll(tx, secrets, owner, { ...all, channel, scope, way, action: "withdrawn" })
  return true
}

/**
 * Allows mail of one kind again: removes what unsubscribing made for it, and nothing else. A bounced
 * address stays suppressed. Returns whether something changed.
 */
export async function resubscribe(
  tx: Tx,
  secrets: ConsentSecrets,
  owner: SettledOwner,
  scope: UnsubscribeScope,
  way: UnsubscribeWay,
): Promise<boolean> {
  const { project_id, address } = owner
  const people = await subscribersAtForUpdate(tx, owner)
  const meant = { channel: "email", address, scope, reason: "unsubscribe" } as const
  const [removed] = await unsuppress(tx, project_id, meant)
  const kind = await kindOf(tx, project_id, scope)
  const defaults = defaultsIn(owner)
  const changed = await changedOf(people, (one) => allowKind(tx, one, kind, defaults))
  if (!removed && changed.length === 0) return false
  const all = { people: removed ? people : changed, subject_id: removed?.id ?? null }
  await recordAll(tx, secrets, owner, { ...all, channel: "email", scope, way, action: "granted" })
  return true
}

/** What the owner of an address wants of a whole channel. */
interface ChannelChoice {
  channel: AudienceChannel
  is_wanted: boolean
}

/**
 * Ends all messages of a channel to the subscribers with the address of a link, or allows them again.
 * Critical messages are sent in any case. Returns whether something changed.
 */
export async function chooseChannel(
  tx: Tx,
  secrets: ConsentSecrets,
  owner: LinkOwner,
  { channel, is_wanted }: ChannelChoice,
  way: UnsubscribeWay,
): Promise<boolean> {
  const people = await subscribersAtForUpdate(tx, owner)
  const changed = await changedOf(people, (one) =>
    is_wanted ? allowChannel(tx, one, channel) : endChannel(tx, one, channel, way.source),
  )
  if (changed.length === 0) return false
  const action = is_wanted ? ("granted" as const) : ("withdrawn" as const)
  await recordAll(tx, secrets, owner, {
    ...{ people: changed, subject_id: null, channel, scope: null, way, action },
  })
  return true
}

/** What the owner of an address wants of one kind of messages. */
interface KindChoice {
  kind: SubscriptionKind
  is_wanted: boolean
}

/**
 * The same for one kind of messages. Of email it is `unsubscribe` and `resubscribe`; the link says nothing
 * about another address than that of email, so of other channels it is the choice of the subscribers alone.
 */
async function chooseKind(
  tx: Tx,
  secrets: ConsentSecrets,
  owner: SettledOwner,
  { kind, is_wanted }: KindChoice,
  way: UnsubscribeWay,
): Promise<boolean> {
  const { channel, scope } = kind
  if (channel === "email") {
    return (is_wanted ? resubscribe : unsubscribe)(tx, secrets, owner, scope, way)
  }
  const defaults = defaultsIn(owner)
  const people = await subscribersAtForUpdate(tx, owner)
  const changed = await changedOf(people, (one) =>
    is_wanted ? allowKind(tx, one, kind, defaults) : endKind(tx, one, kind, way.source),
  )
  if (changed.length === 0) return false
  const action = is_wanted ? ("granted" as const) : ("withdrawn" as const)
  await recordAll(tx, secrets, owner, {
    ...{ people: changed, subject_id: null, channel, scope, way, action },
  })
  return true
}

/** Consent records of one transaction, so that a page with many kinds of mail holds up nobody else. */
export const CONSENTS_AT_ONCE = 1000

const KINDS_AT_ONCE = CONSENTS_AT_ONCE / MOST_SHARING

/** Chooses many kinds, some in each transaction. */
export async function chooseKinds(
  store: Store,
  secrets: ConsentSecrets,
  owner: SettledOwner,
  choices: KindChoice[],
  way: UnsubscribeWay,
): Promise<void> {
  for (let at = 0; at < choices.length; at += KINDS_AT_ONCE) {
    await store.tx(async (tx) => {
      for (const choice of choices.slice(at, at + KINDS_AT_ONCE)) {
        await chooseKind(tx, secrets, owner, choice, way)
      }
    })
  }
}

async function changedOf(
  people: LinkedSubscriber[],
  change: (person: LinkedSubscriber) => Promise<boolean>,
): Promise<LinkedSubscriber[]> {
  const changed: LinkedSubscriber[] = []
  for (const one of people) if (await change(one)) changed.push(one)
  return changed
}

interface MadeChoice extends Pick<NewConsent, "action" | "scope"> {
  channel: AudienceChannel
  /** The subscribers that it is of; with none it is of the address alone. */
  people: LinkedSubscriber[]
  /** The suppression that it made or removed. */
  subject_id: string | null
  way: UnsubscribeWay
}

async function recordAll(
  tx: Tx,
  secrets: ConsentSecrets,
  { account_id, project_id, address }: LinkOwner,
  { people, subject_id, channel, scope, action, way }: MadeChoice,
): Promise<void> {
  const type = action === "withdrawn" ? "unsubscribed" : "resubscribed"
  for (const { row: subscriber } of people) {
    const said = { project_id, channel, scope, action, ...way }
    await recordConsent(tx, secrets, { subscriber_id: subscriber.id, ...said })
    const choice = { channel, reason: way.source, scope }
    await notifyChoice(tx, { account_id, subscriber, type, ...choice })
  }
  if (people.length > 0 || scope === null) return
  await recordConsent(tx, secrets, { project_id, address, scope, action, ...way })
  const subject = { account_id, project_id, subject_id }
  await emit(tx, { ...subject, type: `subscriber.${type}`, data: told(scope, way) })
}

/** The address belongs to no subscriber; the event of the suppression names it. */
const told = (scope: UnsubscribeScope, { source: reason }: UnsubscribeWay) => ({
  ...{ subscriber_id: null, external_id: null, channel: "email" },
  ...{ scope, reason, timestamp: now() },
})
