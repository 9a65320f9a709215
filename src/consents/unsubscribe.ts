import { now } from "../core/time"
import { emit } from "../events/emit"
import type { AudienceChannel } from "../lib/preferences"
import type { Store, Tx } from "../store/store"
import { notifyChoice } from "../subscribers/chosen-preferences"
import { suppress, unsuppress } from "../suppressions/suppressions"
import { type ConsentSecrets, type NewConsent, recordConsent } from "./consents"
import {
  allow,
  end,
  type LinkedSubscriber,
  type SubscriptionKind,
  subscribersAtForUpdate,
} from "./linked-subscribers"
import { bareKind, defaultsIn } from "./subscription-kinds"
import type { FoundLink, UnsubscribeScope } from "./unsubscribe-links"

export interface UnsubscribeWay {
  source: "page" | "one_click" | "api"
  /** What shows that it was so: the request or the received mail. */
  proof: string
  /** Of the person; null where it is not known. */
  ip: string | null
}

type LinkOwner = Pick<FoundLink, "account_id" | "project_id" | "address" | "settings">

/** What the owner of an address wants: a whole channel, where `kind` is null, or one kind of its messages. */
interface OwnerChoice {
  channel: AudienceChannel
  kind: SubscriptionKind | null
  is_wanted: boolean
}

/** Ends mail of one kind to the address of a link, as `choose` does. */
export const unsubscribe = (
  tx: Tx,
  secrets: ConsentSecrets,
  owner: LinkOwner,
  scope: UnsubscribeScope,
  way: UnsubscribeWay,
): Promise<boolean> =>
  choose(
    tx,
    secrets,
    owner,
    { channel: "email", kind: bareKind("email", scope), is_wanted: false },
    way,
  )

/** So many choices, each of at most `MOST_SHARING` subscribers, are made in one transaction, which holds up nobody for long. */
const CHOICES_AT_ONCE = 50

/** Makes many choices, some in each transaction. */
export async function chooseAll(
  store: Store,
  secrets: ConsentSecrets,
  owner: LinkOwner,
  choices: OwnerChoice[],
  way: UnsubscribeWay,
): Promise<void> {
  for (let at = 0; at < choices.length; at += CHOICES_AT_ONCE) {
    await store.tx(async (tx) => {
      for (const choice of choices.slice(at, at + CHOICES_AT_ONCE)) {
        await choose(tx, secrets, owner, choice, way)
      }
    })
  }
}

/**
 * Ends a channel or a kind of its messages, or allows it again: the choice of each subscriber with the address of a link,
 * the consent records and the events. A kind of email is also suppressed for the address. To allow it removes what
 * unsubscribing made for it, and nothing else: a bounced address stays suppressed. Critical messages are sent in any
 * case. A second time changes nothing. Returns whether something changed.
 */
async function choose(
  tx: Tx,
  secrets: ConsentSecrets,
  owner: LinkOwner,
  choice: OwnerChoice,
  way: UnsubscribeWay,
): Promise<boolean> {
  const people = await subscribersAtForUpdate(tx, owner)
  return chooseFor(tx, secrets, owner, people, choice, way)
}

/** As `choose`, for these subscribers, which the transaction holds. */
export async function chooseFor(
  tx: Tx,
  secrets: ConsentSecrets,
  owner: LinkOwner,
  people: LinkedSubscriber[],
  { channel, kind, is_wanted }: OwnerChoice,
  way: UnsubscribeWay,
): Promise<boolean> {
  const scope = kind?.scope ?? null
  const subject =
    channel === "email" && scope !== null
      ? await suppressIn(tx, owner, scope, is_wanted)
      : undefined
  const changed: LinkedSubscriber[] = []
  for (const one of people) {
    const is_changed = is_wanted
      ? await allow(tx, one, channel, kind, defaultsIn(owner))
      : await end(tx, one, channel, scope, way.source)
    if (is_changed) changed.push(one)
  }
  if (!subject && changed.length === 0) return false
  await recordAll(tx, secrets, owner, {
    people: subject ? people : changed,
    subject_id: subject?.id ?? null,
    ...{ channel, scope, way, action: is_wanted ? "granted" : "withdrawn" },
  })
  return true
}

/** Suppresses the address of a link for one kind of mail, or removes that. Returns the suppression that is new or gone. */
async function suppressIn(
  tx: Tx,
  { project_id, address }: LinkOwner,
  scope: UnsubscribeScope,
  is_wanted: boolean,
) {
  const meant = { channel: "email", address, scope, reason: "unsubscribe" } as const
  if (!is_wanted) return suppress(tx, project_id, { ...meant, origin: "page" })
  const [removed] = await unsuppress(tx, project_id, meant)
  return removed
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
