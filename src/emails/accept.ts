import type { ApiError } from "../core/errors"
import type { Caller } from "../identity/caller"
import * as messages from "../messages/pipeline"
import { giveBack } from "../plans/quotas"
import * as sendBuckets from "../plans/send-buckets"
import type { Tx } from "../store/store"
import { type Allowance, reserveEach } from "../tenancy/reservations"
import { add } from "../tenancy/usage"

/** An email at the door, and the quota it is counted under; null counts nowhere. */
export interface Entry {
  message: messages.NewMessage
  allowance: (Allowance & { sends_per_second: number | null }) | null
}

/** Requests of their own; or one request, of which each email stands for itself, or all or none. */
export type Together = "apart" | "permissive" | "strict"

/** What is sent from the sandbox is no use of the service, and counts nothing. */
export const entryOf = (message: messages.NewMessage, caller: Caller): Entry => ({
  message,
  allowance: message.sandbox ? null : allowanceOf(caller),
})

const allowanceOf = ({ account_id, quota_subject, limits, plan }: Caller) => ({
  account_id,
  subject: quota_subject,
  metric: "email" as const,
  limit: limits.emails_per_month,
  sends_per_second: limits.sends_per_second,
  plan,
})

/**
 * The last word before the shared door, inside the transaction: what may have changed since
 * `prepare` is asked again here. Takes many, because entrances are coalesced, and answers for each:
 * the message, or why it is refused: the month's quota (402), then the sends of a second (429).
 */
export async function accept(
  tx: Tx,
  list: Entry[],
  together: Together = "apart",
): Promise<(messages.Message | ApiError)[]> {
  const refused = await reserveAll(tx, list, together)
  await slowDown(tx, list, together, refused)
  const admitted = list.filter((entry) => !refused.has(entry))
  await add(tx, admitted.flatMap(usageOf))
  const accepted = await messages.accept(
    tx,
    admitted.map(({ message }) => message),
  )
  const byId = new Map(accepted.map((message) => [message.id, message]))
  return list.map((entry) => {
    const answer = refused.get(entry) ?? byId.get(entry.message.id)
    if (!answer) throw new Error("a message was neither accepted nor refused")
    return answer
  })
}

/** Every recipient counts, copies included. */
const unitsOf = ({ message }: Entry) => message.recipients.length

async function reserveAll(tx: Tx, list: Entry[], together: Together) {
  const refused = new Map<Entry, ApiError>()
  for (const { allowance, entries } of groups(list, limitName)) {
    const units = entries.map(unitsOf)
    const whole = together === "strict"
    const wishes = whole ? [units.reduce((sum, one) => sum + one, 0)] : units
    const refusals = await reserveEach(tx, allowance, wishes)
    for (const [at, entry] of entries.entries()) {
      const refusal = refusals[whole ? 0 : at]
      if (refusal) refused.set(entry, refusal)
    }
  }
  return refused
}

/** Free accounts of one person share a count, and may have numbers of the operator of their own. */
const limitName = ({ subject, limit }: Group["allowance"]) => `${subject} ${limit}`

/** A batch takes its number of emails at once, and waits as a whole. */
async function slowDown(tx: Tx, list: Entry[], together: Together, refused: Map<Entry, ApiError>) {
  const left = list.filter((entry) => !refused.has(entry))
  for (const { allowance, entries } of groups(left, (_, { project_id }) => project_id)) {
    const [first] = entries
    const bucket = {
      project_id: first?.message.project_id ?? "",
      channel: "email",
      limit: allowance.sends_per_second,
    }
    const wishes = together === "apart" ? entries.map(() => 1) : [entries.length]
    const refusals = await sendBuckets.take(tx, bucket, wishes)
    const [whole] = refusals
    if (together !== "apart" && whole) throw whole
    for (const [at, entry] of entries.entries()) {
      const refusal = refusals[at]
      if (!refusal) continue
      refused.set(entry, refusal)
      await giveBack(tx, allowance, unitsOf(entry))
    }
  }
}

interface Group {
  allowance: NonNullable<Entry["allowance"]>
  entries: Entry[]
}

/** In one order everywhere, so that no two transactions wait for each other's rows. */
function groups(
  list: Entry[],
  nameOf: (allowance: Group["allowance"], message: messages.NewMessage) => string,
): Group[] {
  const all = new Map<string, Group>()
  for (const entry of list) {
    const { allowance, message } = entry
    if (!allowance) continue
    const name = nameOf(allowance, message)
    const group = all.get(name) ?? { allowance, entries: [] }
    group.entries.push(entry)
    all.set(name, group)
  }
  const order = [...all.keys()].sort()
  return order.flatMap((name) => all.get(name) ?? [])
}

function usageOf(entry: Entry) {
  const { message, allowance } = entry
  if (!allowance) return []
  const { account_id, project_id, created_at } = message
  const day = created_at.slice(0, 10)
  return [{ account_id, project_id, day, metric: "email" as const, value: unitsOf(entry) }]
}

/** The reply to a send that repeats an earlier one: it tells everybody whom it goes to. */
export function resentReply(message: Replied) {
  const { top, data } = reply(message)
  const recipients = message.recipients.map(({ email, kind }) => ({ email, kind }))
  return { top, data: { ...data, recipients } }
}

/** The reply to a send, and what a repetition of the request is answered. */
export function reply({ id, rfc_message_id, recipients, created_at }: Replied) {
  const [to] = recipients
  const data = {
    id,
    status: "queued" as const,
    rfc_message_id: rfc_message_id as string,
    to: { email: to?.email ?? "", name: to?.name ?? null },
    scheduled_at: null,
    created_at,
  }
  return { top: { id }, data }
}

type Replied = Pick<messages.NewMessage, "id" | "rfc_message_id" | "recipients" | "created_at">
