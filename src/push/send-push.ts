import { ApiError, invalid } from "../core/errors"
import { workTurn } from "../core/work-turns"
import type { BulkItems } from "../http/bulk-items"
import { answerOnce, type Claim, keepAnswer } from "../http/idempotency"
import type { Caller } from "../identity/caller"
import { accept, entryOf, refuseFrozen, type SendBatcher } from "../messages/accept"
import type { Message } from "../messages/status-changes"
import type { NewMessage } from "../messages/tables"
import type { Store } from "../store/store"
import { type PushRules, prepare } from "./prepare"
import type { SendPush } from "./push-input"

export interface PushSendParts {
  store: Store
  intake: SendBatcher
  push_rules: PushRules
}

interface PushRequest<Body> {
  caller: Caller
  claim: Claim | undefined
  signal: AbortSignal
  body: Body
}

/**
 * Sends a push message to each device that it reaches, to all or to none. Throws 404, 400 `push_not_configured`, 422,
 * 402 and 403 as other sends do, and 429 for the sends of a second.
 */
export async function sendPush(
  { store, intake, push_rules }: PushSendParts,
  call: PushRequest<SendPush>,
) {
  const { caller, claim, signal, body } = call
  const messages = await prepare(body, { caller, idempotency_key: claim?.key ?? null }, push_rules)
  await refuseFrozen(store.read, caller, "push", messages.length)
  const [only, ...others] = messages
  if (only && others.length === 0) {
    const answer = (accepted: Accepted) => ({ data: sent([only], [accepted]) })
    return answer(await intake.submit(entryOf(only, caller), call, answer))
  }
  signal.throwIfAborted() // told 504 already: nothing may be sent any more
  const entries = messages.map((message) => entryOf(message, caller))
  return answerOnce(
    store,
    claim,
    async (tx) => sent(messages, (await accept(tx, entries, "strict")).map(acceptedOf)),
    caller.project_id,
  )
}

type Accepted = Partial<Pick<Message, "status">>

function acceptedOf(answer: Message | ApiError): Message {
  if (answer instanceof ApiError) throw answer
  return answer
}

/** What a send answers (contract 40, section 1). With one device its id is that of the message. */
function sent(messages: NewMessage[], accepted: Accepted[]) {
  const [first] = messages
  return {
    id: first?.batch_id ?? first?.id ?? "",
    status: "queued" as const,
    devices: messages.length,
    messages: messages.map(({ id, address, envelope, refused }, at) => ({
      ...{ id, device_id: address, provider: envelope?.push?.provider ?? "webpush" },
      status: accepted[at]?.status ?? (refused ? ("failed" as const) : ("queued" as const)),
    })),
  }
}

/** Items that are prepared in one turn of the event loop. */
const AT_ONCE = 10

/** Of one request: people may have many devices. */
const MOST_MESSAGES = 1000

const TOO_MANY = [
  "too_many_devices",
  `The messages before this one reach so many devices that it would be more than ${MOST_MESSAGES}.`,
] as const

interface PreparedItem {
  index: number
  messages: NewMessage[]
}

/** Sends each item that is right, as a send of its own: what is wrong with others is in the answer. */
export async function sendPushes(
  { store, push_rules }: Omit<PushSendParts, "intake">,
  { caller, claim, signal, body }: PushRequest<BulkItems<SendPush>>,
) {
  const origin = { caller, idempotency_key: claim?.key ?? null }
  const failed = [...body.failed]
  const prepared: PreparedItem[] = []
  let total = 0
  for (const [at, { index, item }] of body.given.entries()) {
    if (at % AT_ONCE === 0) await workTurn(caller.project_id)
    try {
      const messages = await prepare(item, origin, push_rules)
      if (total + messages.length > MOST_MESSAGES) throw invalid(`messages.${index}`, ...TOO_MANY)
      prepared.push({ index, messages })
      total += messages.length
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      failed.push({ index, error })
    }
  }
  const entries = prepared.flatMap(({ messages }) => messages.map((one) => entryOf(one, caller)))
  await refuseFrozen(store.read, caller, "push", entries.length)
  signal.throwIfAborted() // told 504 already: nothing may be sent any more
  return store.tx(async (tx) => {
    const answers = await accept(tx, entries, "permissive")
    const answerOf = new Map(entries.map(({ message }, at) => [message.id, answers[at]]))
    const results = prepared.map(({ index, messages }) => {
      const theirs = messages.flatMap(({ id }) => answerOf.get(id) ?? [])
      const refusal = theirs.find((one) => one instanceof ApiError)
      if (refusal) return failure({ index, error: refusal })
      const { id, messages: made } = sent(messages, theirs.map(acceptedOf))
      return { index, id, messages: made }
    })
    const all = [...results, ...failed.map(failure)].sort((a, b) => a.index - b.index)
    const refused = all.filter((one) => "error" in one).length
    const counts = { total: all.length, succeeded: all.length - refused, failed: refused }
    const answer = { data: { ...counts, results: all } }
    await keepAnswer(tx, claim, answer)
    return answer
  }, caller.project_id)
}

const failure = ({ index, error }: BulkItems<unknown>["failed"][number]) => {
  const { code, message, details } = error
  return { index, error: { code, message, details: details as Record<string, unknown> } }
}
