import { and, asc, eq } from "drizzle-orm"
import type { Secrets } from "../core/secrets"
import { now } from "../core/time"
import { emit } from "../events/emit"
import type { Reader, Tx } from "../store/store"
import { standing } from "../suppressions/look-up"
import { scopeOf, suppress, unsuppress } from "../suppressions/suppressions"
import { recordConsent } from "./consents"
import { unsubscribeLinks } from "./tables"
import type { FoundLink, UnsubscribeScope } from "./unsubscribe-links"

/** How the owner of the address said it. */
export interface UnsubscribeWay {
  source: "page" | "one_click"
  /** What shows that it was so: the request or the received mail. */
  proof: string
  /** Of the person; null where it is not known. */
  ip: string | null
}

type LinkOwner = Pick<FoundLink, "account_id" | "project_id" | "address">

/**
 * Ends mail of one kind to the address of a link: its suppression, the consent record and the events.
 * A second time changes nothing. Returns whether something changed.
 */
export async function unsubscribe(
  tx: Tx,
  secrets: Pick<Secrets, "mac">,
  { account_id, project_id, address }: LinkOwner,
  scope: UnsubscribeScope,
  way: UnsubscribeWay,
): Promise<boolean> {
  const added = await suppress(tx, project_id, {
    ...{ channel: "email", address, scope },
    ...{ reason: "unsubscribe", origin: "page" },
  })
  if (!added) return false
  const consent = { project_id, address, scope, action: "withdrawn" as const, ...way }
  await recordConsent(tx, secrets, consent)
  const subject = { account_id, project_id, subject_id: added.id }
  await emit(tx, { ...subject, type: "subscriber.unsubscribed", data: told(scope, way) })
  return true
}

/**
 * Allows mail of one kind again: removes what unsubscribing made for it, and nothing else. A bounced
 * address stays suppressed. Returns whether something changed.
 */
export async function resubscribe(
  tx: Tx,
  secrets: Pick<Secrets, "mac">,
  { account_id, project_id, address }: LinkOwner,
  scope: UnsubscribeScope,
  way: UnsubscribeWay,
): Promise<boolean> {
  const meant = { channel: "email", address, scope, reason: "unsubscribe" } as const
  const [removed] = await unsuppress(tx, project_id, meant)
  if (!removed) return false
  const consent = { project_id, address, scope, action: "granted" as const, ...way }
  await recordConsent(tx, secrets, consent)
  const subject = { account_id, project_id, subject_id: removed.id }
  await emit(tx, { ...subject, type: "subscriber.resubscribed", data: told(scope, way) })
  return true
}

/** The address belongs to no subscriber; the event of the suppression names it. */
const told = (scope: UnsubscribeScope, { source: reason }: UnsubscribeWay) => ({
  ...{ subscriber_id: null, external_id: null, channel: "email" },
  ...{ scope, reason, timestamp: now() },
})

/** One kind of mail that an address gets or got, and whether it still may. */
export interface Subscription {
  scope: UnsubscribeScope
  is_subscribed: boolean
}

/** More kinds of mail than this are not shown to one person. */
const MOST_KINDS = 200

/** All kinds of mail that the address knows: what it got, and what it unsubscribed from. */
export async function subscriptionsOf(
  db: Reader,
  { project_id, address }: Pick<LinkOwner, "project_id" | "address">,
): Promise<Subscription[]> {
  const ours = and(
    eq(unsubscribeLinks.project_id, project_id),
    eq(unsubscribeLinks.address, address),
  )
  const { scope_type: type, scope_key: key } = unsubscribeLinks
  const got = await db
    .selectDistinct({ type, key })
    .from(unsubscribeLinks)
    .where(ours)
    .orderBy(asc(type), asc(key))
    .limit(MOST_KINDS)
  const ended = (await standing(db, project_id, "email", [address]))
    .filter(({ reason, scope_type }) => reason === "unsubscribe" && scope_type !== "project")
    .map(({ scope_type, scope_key }) => scopeOf(scope_type, scope_key) as UnsubscribeScope)
  const names = new Set(ended.map(nameOf))
  const all = new Map([...got, ...ended].map((scope) => [nameOf(scope), scope]))
  const sorted = [...all].sort(([one], [other]) => (one < other ? -1 : 1)).slice(0, MOST_KINDS)
  return sorted.map(([name, scope]) => ({ scope, is_subscribed: !names.has(name) }))
}

/** A scope as one text: `category:news`. */
export const nameOf = ({ type, key }: UnsubscribeScope): string => `${type}:${key ?? ""}`
