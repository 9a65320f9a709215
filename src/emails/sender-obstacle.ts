import { isVerified, senderReadiness } from "../domains/sending-domains"
import { isOpen, type Message, OWN_SOURCE } from "../messages/facts"
import { NO_REPLY, type Outcome, outcomeOf } from "../providers/provider"
import type { Store } from "../store/store"
import { MAILBOX_DOMAIN, type SendRules } from "./prepare"

const MINUTE = 60

interface Whose {
  store: Store
  rules: Pick<SendRules, "sending_domains">
}

const SLOWEST = 60 * MINUTE

/**
 * Why a message that was accepted may not leave now: its domain lost its records meanwhile, then it
 * waits; or it was deleted, then it fails. Undefined where nothing stands in the way.
 */
export async function senderObstacle(
  { store, rules }: Whose,
  message: Message,
  provider: string,
): Promise<Outcome | undefined> {
  const db = store.read
  const { project_id, sender_domain: domain, source } = message
  if (domain === null || source === OWN_SOURCE || domain === MAILBOX_DOMAIN) return undefined
  if (rules.sending_domains.has(domain)) return undefined
  if (await isVerified(db, project_id, domain, true)) return undefined
  const now = await senderReadiness(db, project_id, domain)
  if (now === "verified") return undefined
  return outcome(message, provider, now === "waiting", domain)
}

function outcome(message: Message, provider: string, waits: boolean, domain: string): Outcome {
  const all = message.recipients
    .filter(({ status }) => isOpen(status))
    .map(({ email }) => ({
      email,
      status: waits ? ("retry" as const) : ("failed" as const),
      reason: waits
        ? `The domain ${domain} lost its DNS records. The message waits until they are back.`
        : `The domain ${domain} is no longer verified.`,
      bounce_subtype: null,
      code: "domain_not_verified",
      reply: NO_REPLY,
    }))
  return outcomeOf(all, { provider, schedule })
}

/** Asked again soon at first, then every hour, for as long as the domain is waited for. */
const schedule = (attempt: number) => Math.min(5 * MINUTE * attempt, SLOWEST)
