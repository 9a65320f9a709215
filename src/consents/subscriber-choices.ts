import { and, eq, inArray, type SQL } from "drizzle-orm"
import { fail, tooMany } from "../core/errors"
import { newId } from "../core/ids"
import { now } from "../core/time"
import type { Caller } from "../identity/caller"
import type { AudienceChannel } from "../lib/preferences"
import { newRowInserter } from "../store/statements"
import type { Reader, Tx } from "../store/store"
import { requireCategory } from "../subscribers/categories"
import { notifyChoice } from "../subscribers/chosen-preferences"
import type { SubscriberRow } from "../subscribers/find-subscriber"
import { subscribers, unsubscribes } from "../subscribers/tables"
import { unsuppress } from "../suppressions/suppressions"
import type { SuppressionRow } from "../suppressions/tables"
import { type ConsentSecrets, type NewConsent, recordConsent, scopeOfChoice } from "./consents"

type UnsubscribeRow = typeof unsubscribes.$inferSelect

/** What a subscriber ends or allows again: a whole channel, or one category of it. */
interface SubscriberChoice {
  channel: AudienceChannel
  category?: string | null | undefined
  reason?: string | null | undefined
}

/** Of one subscriber: what the API ends. The pages of a mail are not held to it, nor is a whole channel. */
export const MOST_UNSUBSCRIBES = 1000

/**
 * Ends a channel, or one category of it, for a subscriber: the row, the consent record and the event.
 * Throws 409 where it has ended already, 409 at `MOST_UNSUBSCRIBES` categories, and 422 for a category that
 * the project does not have.
 */
export async function unsubscribeSubscriber(
  tx: Tx,
  secrets: ConsentSecrets,
  { account_id, project_id }: Pick<Caller, "account_id" | "project_id">,
  subscriber: SubscriberRow,
  given: SubscriberChoice,
): Promise<UnsubscribeRow> {
  const category = given.category ?? ""
  await requireCategory(tx, project_id, given.category)
  const added = await addUnsubscribe(tx, subscriber, { ...given, category })
  if (!added) return await hasEnded(tx, subscriber, given)
  if (category !== "") await requireFewUnsubscribes(tx, [subscriber])
  const reason = given.reason ?? null
  await recordChoice(tx, secrets, subscriber, given, { action: "withdrawn", proof: reason })
  await notifyChoice(tx, { account_id, subscriber, type: "unsubscribed", ...toldOf(given) })
  return added
}

/** Throws 409 `conflict`, reason `too_many`, where the subscribers together ended too much. */
export async function requireFewUnsubscribes(
  db: Reader,
  people: Pick<SubscriberRow, "id" | "external_id">[],
): Promise<void> {
  const { subscriber_id, channel, category } = unsubscribes
  const ids = people.map(({ id }) => id)
  const rows = db.selectDistinct({ channel, category }).from(unsubscribes)
  const most = MOST_UNSUBSCRIBES
  if ((await rows.where(inArray(subscriber_id, ids)).limit(most + 1)).length <= most) return
  const names = people.map(({ external_id }) => external_id).join(" and ")
  const text = `A subscriber has at most ${most} unsubscribes, and ${names} would have more. End the whole channel, or resubscribe to a category first.`
  tooMany(text, most)
}

async function hasEnded(
  db: Reader,
  { id: subscriber_id, external_id }: SubscriberRow,
  { channel, category }: SubscriberChoice,
): Promise<never> {
  const [known] = await db
    .select({ id: unsubscribes.id })
    .from(unsubscribes)
    .where(and(isOf(subscriber_id, channel), eq(unsubscribes.category, category ?? "")))
  const what = category == null ? channel : `the category ${category} of ${channel}`
  return fail("conflict", `${external_id} unsubscribed from ${what} already.`, {
    reason: "exists",
    ...(known && { id: known.id }),
  })
}

const isOf = (subscriber_id: string, channel: AudienceChannel): SQL | undefined =>
  and(eq(unsubscribes.subscriber_id, subscriber_id), eq(unsubscribes.channel, channel))

/** Adds the row alone. Returns undefined where there is one. */
export async function addUnsubscribe(
  tx: Tx,
  subscriber: Pick<SubscriberRow, "id" | "project_id">,
  choice: SubscriberChoice & { category: string },
): Promise<UnsubscribeRow | undefined> {
  const [added] = await addUnsubscribes(tx, subscriber, [choice])
  return added
}

/** Adds rows alone, and leaves those that are there. Returns the new ones. */
export async function addUnsubscribes(
  tx: Tx,
  { id: subscriber_id, project_id }: Pick<SubscriberRow, "id" | "project_id">,
  choices: (SubscriberChoice & { category: string })[],
): Promise<UnsubscribeRow[]> {
  const created_at = now()
  const rows = choices.map(({ channel, category, reason = null }) => ({
    ...{ id: newId(), project_id, subscriber_id, channel, category, reason, created_at },
  }))
  const fresh = await insertUnsubscribes(tx, rows)
  return rows.filter(({ id }) => fresh.has(id))
}

const insertUnsubscribes = newRowInserter(unsubscribes, "id")

/**
 * Allows a channel again, or one category of it. With the rows go the suppressions that unsubscribing
 * made for a category, a topic or broadcasts; a bounced address stays suppressed. Without a category it
 * is all of the channel. Returns how many were removed; 0 where nothing had ended.
 */
export async function resubscribeSubscriber(
  tx: Tx,
  secrets: ConsentSecrets,
  caller: Pick<Caller, "account_id" | "project_id" | "actor" | "ip">,
  subscriber: SubscriberRow,
  given: SubscriberChoice,
): Promise<number> {
  const rows = await removeUnsubscribes(tx, subscriber.id, given)
  const lifted = await liftSuppressions(tx, caller, subscriber, given)
  await allowTopics(tx, subscriber, given.channel, lifted)
  const removed = rows + lifted.length
  if (removed === 0) return 0
  const proof = given.reason ?? null
  await recordChoice(tx, secrets, subscriber, given, { action: "granted", proof })
  const { account_id } = caller
  await notifyChoice(tx, { account_id, subscriber, type: "resubscribed", ...toldOf(given) })
  return removed
}

/** Removes the rows of a channel, or that of one category of it. Returns how many there were. */
export async function removeUnsubscribes(
  tx: Tx,
  subscriber_id: string,
  { channel, category }: Pick<SubscriberChoice, "channel" | "category">,
): Promise<number> {
  const meant = category == null ? undefined : eq(unsubscribes.category, category)
  const gone = await tx
    .delete(unsubscribes)
    .where(and(isOf(subscriber_id, channel), meant))
    .returning({ id: unsubscribes.id })
  return gone.length
}

async function liftSuppressions(
  tx: Tx,
  caller: Pick<Caller, "project_id" | "actor" | "ip">,
  { email, phone }: SubscriberRow,
  { channel, category }: SubscriberChoice,
): Promise<SuppressionRow[]> {
  const address = channel === "email" ? email : channel === "sms" ? phone : null
  if (address === null || (channel !== "email" && channel !== "sms")) return []
  const scope = category == null ? undefined : { type: "category" as const, key: category }
  const meant = { channel, address, scope, reason: "unsubscribe" as const }
  return unsuppress(tx, caller.project_id, { ...meant, is_partial: true }, caller)
}

/** The link that made the suppression of a topic wrote a no for it, too: it becomes a yes, as on the page. */
async function allowTopics(
  tx: Tx,
  { id, preferences }: SubscriberRow,
  channel: AudienceChannel,
  lifted: SuppressionRow[],
): Promise<void> {
  const keys = lifted.flatMap((one) => (one.scope_type === "topic" ? one.scope_key : []))
  const ended = Object.entries(preferences?.topics ?? {}).filter(
    ([key, entry]) => keys.includes(key) && entry[channel] === false,
  )
  if (ended.length === 0) return
  const allowed = ended.map(([key, entry]) => [key, { ...entry, [channel]: true }])
  const topics = { ...preferences?.topics, ...Object.fromEntries(allowed) }
  const changed = { preferences: { ...preferences, topics }, updated_at: now() }
  await tx.update(subscribers).set(changed).where(eq(subscribers.id, id))
}

const toldOf = (choice: SubscriberChoice) => ({
  channel: choice.channel,
  scope: scopeOfChoice(choice),
  reason: choice.reason,
})

/** Adds to the chain of the subscriber what it chose through the API. */
function recordChoice(
  tx: Tx,
  secrets: ConsentSecrets,
  { id: subscriber_id, project_id }: SubscriberRow,
  choice: SubscriberChoice,
  { action, proof }: Pick<NewConsent, "action" | "proof">,
) {
  const { channel } = choice
  const said = { channel, scope: scopeOfChoice(choice), action, proof }
  return recordConsent(tx, secrets, {
    ...{ project_id, subscriber_id, ...said },
    ...{ source: "api", ip: null },
  })
}

/** The Unsubscribe record of the contract (43, section 1). */
export const shownUnsubscribe = ({ project_id: _, category, ...row }: UnsubscribeRow) => ({
  ...row,
  category: category === "" ? null : category,
})
