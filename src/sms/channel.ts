import type { Secrets } from "../core/secrets"
import { Semaphore } from "../lib/semaphore"
import type { Channel } from "../messages/channel"
import { isSealed, openContent } from "../messages/sealed-contents"
import { asksAudience } from "../messages/send-fields"
import { expiredLife, signInOutcome } from "../messages/short-lived"
import type { Message } from "../messages/status-changes"
import { audienceObstacle, suppressedMeanwhile } from "../messages/suppressed"
import type { Outcome, RecipientOutcome } from "../providers/provider"
import type { Store } from "../store/store"
import type { TextContent } from "./prepare"
import { type SmsProvider, smsSchedule } from "./providers/provider"

export interface SmsChannelParts {
  store: Store
  secrets: Secrets
  /** Those that projects configured, or the instance's own. */
  provider: SmsProvider
  /** For projects in the sandbox: provider `log`. */
  sandbox: SmsProvider
  /** Texts that are sent at the same time. */
  concurrency: number
}

/** Hands a text to its provider, once for each attempt. */
export function smsChannel(parts: SmsChannelParts): Channel {
  const { store, secrets, provider, sandbox, concurrency } = parts
  const permits = new Semaphore(concurrency)
  const providerOf = (message: Message) => (message.sandbox ? sandbox : provider)
  return {
    async prepare(message, content) {
      const { id, project_id, stream, address } = message
      await providerOf(message).admit?.(id, [address], stream === "auth", project_id)
      return { content }
    },
    permit: () => permits.acquire(),
    release: (message_id) => provider.dismiss?.(message_id),
    async deliver(message, content) {
      const { id, project_id, address, sender, envelope, attempt } = message
      const excluded = asksAudience(message)
        ? await audienceObstacle(store.read, message)
        : undefined
      const [stopped] = excluded ?? (await suppressedMeanwhile(store.read, message))
      if (stopped) return alone(stopped)
      const [late] = expiredLife(message) ?? []
      if (late) return alone(late)
      const { body } = isSealed(content)
        ? openContent<TextContent>(secrets, id, content)
        : (content as TextContent)
      const { encoding = "ucs2", from_given } = envelope?.sms ?? {}
      const outcome = await providerOf(message).send({
        message_id: id,
        project_id,
        to: [address],
        from: from_given ? sender : null,
        text: body,
        encoding,
        attempt,
      })
      return signInOutcome(message, outcome)
    },
  }
}

/** The outcome of a text that no provider was asked for. */
const alone = (one: RecipientOutcome): Outcome => ({
  ...one,
  ...{ provider: null, schedule: smsSchedule, others: [], transcript: [] },
})
