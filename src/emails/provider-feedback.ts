import { eq } from "drizzle-orm"
import { log } from "../core/log"
import type { JobHandler, JobResult } from "../jobs/jobs"
import { ageSeconds } from "../jobs/work-rows"
import { comparable } from "../lib/address"
import { feedback, wasTold } from "../messages/settle"
import { isOpen, type Message, type StatusChange } from "../messages/status-changes"
import { messages, type Status } from "../messages/tables"
import { INSTANCE_NAME, messageFor, type ProviderFeedback } from "../providers/callbacks"
import type { ProviderNotice } from "../providers/provider"
import { rowById } from "../store/rows"
import type { Reader, Store } from "../store/store"

const KEPT_SECONDS = 600

/** Tells a message what its provider found out. Before the message is settled here it waits. */
export const applyFeedback = (store: Store): JobHandler<ProviderFeedback> => ({
  run: async (told, job): Promise<JobResult> => {
    const message = await find(store.read, told)
    if (message && message !== "unsettled") {
      return {
        done: async (tx) => {
          for (const fact of factsOf(message, told.notices)) {
            // SNS may say everything twice, and the second time anything may have happened since.
            if (!(await wasTold(tx, message, fact))) await feedback(tx, message.id, fact)
          }
        },
      }
    }
    if (message === "unsettled" || ageSeconds(job) < KEPT_SECONDS) {
      return { retry: "The message of this notification is not stored yet." }
    }
    const { provider_message_id } = told
    const config_id = told.project_id === null ? INSTANCE_NAME : told.config_id
    log.debug("a notification names a message that is not ours", { config_id, provider_message_id })
    return {}
  },
})

async function find(
  db: Reader,
  told: ProviderFeedback,
): Promise<Message | "unsettled" | undefined> {
  const meant = await messageFor(db, told)
  if (!meant) return undefined
  const ours = eq(messages.project_id, meant.project_id)
  const message = await rowById(db, messages, meant.id, ours)
  if (!message) return undefined
  return message.recipients.some(({ status }) => isOpen(status)) ? "unsettled" : message
}

/** Addresses come back in other letters than they were given in. */
function factsOf(
  { recipients }: Message,
  notices: ProviderNotice[],
): (StatusChange & { type: Status })[] {
  const known = new Map(recipients.map(({ email }) => [comparable(email), email]))
  return notices.flatMap(({ recipient, type, price: _, provider_code: __, ...notice }) => {
    const told = recipient ?? recipients[0]?.email ?? ""
    const address = known.get(comparable(told))
    if (address === undefined || type === "opted_out") return []
    const { smtp_code = null, enhanced_code = null, response, ...more } = notice
    const fact = { type, ...more }
    const detail = { smtp_code, enhanced_code, response, mx: null, tls: null }
    const is_no = fact.type === "failed" || fact.type === "bounced"
    const text = response ?? (fact.type === "bounced" ? (fact.bounce_subtype ?? "") : "")
    const error = is_no ? { error: { code: "provider_error", message: text } } : {}
    return [{ ...fact, address, detail, ...error }]
  })
}
