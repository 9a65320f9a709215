import { ApiError } from "../core/errors"
import { newId } from "../core/ids"
import { millis } from "../core/time"
import { answerOnce, type Claim } from "../http/idempotency"
import type { Caller } from "../identity/caller"
import { allowanceOf, entryOf, refuseFrozen } from "../messages/accept"
import { decideAll, lockFor, type MessageQuery } from "../messages/audience-decisions"
import { keptOf } from "../messages/decided"
import type { Store, Tx } from "../store/store"
import { type AudienceMember, heirsIncluded } from "../subscribers/audience"
import { limitsForUpdate } from "../tenancy/quotas"
import { acceptNotes, newNote } from "./accept"
import type { SendNote } from "./inbox-input"
import { type InboxRules, prepare } from "./prepare"

const IN_APP = "in_app" as const

interface InboxSend {
  caller: Caller
  claim: Claim | undefined
  signal: AbortSignal
  body: SendNote
}

type PreparedSend = Awaited<ReturnType<typeof prepare>>

/**
 * Puts a message into the inbox of each recipient, all in one transaction. Those whose preferences exclude them are
 * skipped. Throws 404, 402 and 403 as other sends do, and 429 for the sends of a second.
 */
export async function sendInbox(store: Store, rules: InboxRules, send: InboxSend) {
  const { caller, claim, signal, body } = send
  const prepared = await prepare(body, caller, rules)
  await refuseFrozen(store.read, caller, IN_APP, prepared.notes.length)
  signal.throwIfAborted() // told 504 already: nothing may be sent any more
  return answerOnce(store, claim, (tx) => enter(tx, send, prepared), caller.project_id)
}

async function enter(tx: Tx, { caller, claim, body }: InboxSend, { notes, used }: PreparedSend) {
  const { account_id, project_id, key_id: api_key_id, project_settings } = caller
  const { category, tags, metadata, collapse_key, expires_at } = body
  const { sandbox } = project_settings
  await holdLimits(tx, caller)
  const is_one = notes.length === 1
  const batch_id = is_one ? null : newId()
  const allowed = await allowedOf(tx, caller, notes, category)
  const entries = allowed.map(({ member, decision, note: { content, shared_id } }) => {
    const message = newNote({
      ...{ account_id, project_id, api_key_id, sandbox, category, tags, metadata, batch_id },
      ...{ stream: "transactional", source: "api", idempotency_key: claim?.key ?? null },
      template_id: used?.id ?? null,
      subscriber: member,
      envelope: { decision: keptOf(decision), ...(used && { template: used }) },
      note: { content, shared_id, collapse_key, expires_at },
    })
    return entryOf(message, caller)
  })
  const answers = await acceptNotes(tx, entries, "strict")
  const messages = answers.map((answer, at) => {
    if (answer instanceof ApiError) throw answer
    return { id: answer.id, subscriber_id: entries[at]?.message.address ?? "" }
  })
  const skipped = notes.length - messages.length
  const id = is_one ? (messages[0]?.id ?? null) : batch_id
  return { id, status: "created" as const, messages, skipped }
}

/** Before the subscribers, as every send does: in another order the two would deadlock. */
async function holdLimits(tx: Tx, caller: Caller): Promise<void> {
  const { project_id, limits, project_settings } = caller
  if (project_settings.sandbox) return
  const bucket = { project_id, channel: IN_APP, limit: limits.sends_per_second }
  await limitsForUpdate(tx, [allowanceOf(caller, IN_APP)], [bucket])
}

/** The notes whose recipients may get them. A recipient that was removed meanwhile gets nothing. */
async function allowedOf(
  tx: Tx,
  { project_id, project_settings: settings }: Caller,
  notes: PreparedSend["notes"],
  category: string | null,
) {
  const ids = notes.map(({ subscriber }) => subscriber.id)
  const members = await heirsIncluded(tx, project_id, ids, lockFor(settings))
  const present = new Map<string, { member: AudienceMember; note: PreparedSend["notes"][0] }>()
  for (const note of notes) {
    const member = members.get(note.subscriber.id)
    if (member) present.set(member.id, { member, note }) // two of them may be one by now
  }
  const list = [...present.values()]
  const queries = list.map(
    ({ member }): MessageQuery => ({
      ...{ subscriber: member, address: null, channel: IN_APP, stream: "transactional", category },
      ...{ topic: null, at: millis() },
    }),
  )
  const decisions = await decideAll(tx, { id: project_id, settings }, queries)
  return list.flatMap((one, at) => {
    const decision = decisions[at]
    return decision?.is_allowed ? [{ ...one, decision }] : []
  })
}
