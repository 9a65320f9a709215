import { eq } from "drizzle-orm"
import { isUuid } from "../core/ids"
import { log } from "../core/log"
import type { JobHandler, JobResult } from "../jobs/jobs"
import { ageSeconds } from "../jobs/work-rows"
import { comparable } from "../lib/address"
import {
  INSTANCE_NAME,
  mayHaveSent,
  messageFor,
  type ProviderFeedback,
  recipientOf,
} from "../providers/callbacks"
import type { ProviderNotice, ReceivedText } from "../providers/provider"
import { rowById } from "../store/rows"
import type { Reader, Store, Tx } from "../store/store"
import { feedback, wasTold } from "./settle"
import { addressOf, isOpen, type Message, type StatusChange } from "./status-changes"
import { messages, type Status } from "./tables"

const KEPT_SECONDS = 600

/** Stores what came in by a provider. */
type Receive = (tx: Tx, told: ProviderFeedback, received: ReceivedText) => Promise<void>

/**
 * Tells a message what its provider found out; before the message is settled here it waits. What a person
 * wrote is stored.
 */
export const applyFeedback = (store: Store, receive: Receive): JobHandler<ProviderFeedback> => ({
  run: async (told, job): Promise<JobResult> => {
    const { received, notices } = told
    if (received) return { done: (tx) => receive(tx, told, received) }
    const message = await find(store.read, told)
    if (message && message !== "unsettled") {
      return {
        done: async (tx) => {
          for (const fact of factsOf(message, notices)) {
            // A provider may say everything twice, and the second time anything may have happened since.
            const was_told = await wasTold(tx, message, fact)
            await feedback(tx, message.id, was_told ? { ...fact, was_told } : fact)
          }
        },
      }
    }
    if (message === "unsettled" || ageSeconds(job) < KEPT_SECONDS) {
      return { retry: "The message of this notification is not stored yet." }
    }
    const { provider_message_id, message_id } = told
    const config_id = told.project_id === null ? INSTANCE_NAME : told.config_id
    const named = { config_id, provider_message_id, message_id }
    log.debug("a notification names a message that is not ours", named)
    return {}
  },
})

async function find(
  db: Reader,
  told: ProviderFeedback,
): Promise<Message | "unsettled" | undefined> {
  const message = (await findByOurId(db, told)) ?? (await findByReceipt(db, told))
  if (!message || message.status === "received") return undefined
  return message.recipients.some(({ status }) => isOpen(status)) ? "unsettled" : message
}

/** A configuration of a project names those messages of that project alone that it can have sent. */
async function findByOurId(db: Reader, told: ProviderFeedback) {
  const { message_id, project_id, config_id, provider } = told
  if (message_id === undefined || project_id === null || !isUuid(message_id)) return undefined
  const row = await rowById(db, messages, message_id, eq(messages.project_id, project_id))
  if (!row || (row.provider !== null && row.provider !== provider)) return undefined
  return (await mayHaveSent(db, config_id, row)) ? row : undefined
}

async function findByReceipt(db: Reader, told: ProviderFeedback) {
  const meant = await messageFor(db, told)
  return meant && rowById(db, messages, meant.id, eq(messages.project_id, meant.project_id))
}

/** Addresses come back in other letters than they were given in. */
function factsOf(
  { recipients }: Message,
  notices: ProviderNotice[],
): (StatusChange & { type: Status })[] {
  const known = new Map(recipients.map(addressOf).map((one) => [comparable(one), one]))
  const [first] = known.values()
  return notices.flatMap((notice) => {
    const { type, recipient: _, ...telling } = notice
    const recipient = recipientOf(notice)
    const address = recipient === undefined ? first : known.get(comparable(recipient))
    if (address === undefined) return []
    const { smtp_code = null, enhanced_code = null, response, ...more } = telling
    const { provider_code, price, ...fact } = more
    const codes = { smtp_code, enhanced_code, response, mx: null, tls: null }
    const detail = { ...codes, ...(provider_code && { provider_code }), ...(price && { price }) }
    const error = BAD.has(type) && { error: { code: "provider_error", message: wordsOf(telling) } }
    return [{ ...fact, type, address, detail, ...error }]
  })
}

const BAD = new Set<Status>(["failed", "bounced", "undelivered"])

const wordsOf = ({ response, bounce_subtype, provider_code }: Omit<ProviderNotice, "type">) =>
  response ?? bounce_subtype ?? provider_code ?? "no reason was given"
