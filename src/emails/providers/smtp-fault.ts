import type { Fault } from "../../messages/channel"
import type { SmtpReply } from "./smtp-reply"
import { Refusal } from "./smtp-session"
import { isLogin, isRefusalOfUs, isSendingLimit, isTooLarge } from "./smtp-verdict"
import { Trouble } from "./smtp-wire"

/** What a refusal at RCPT, at DATA or of the message says about us; mostly it is about them. */
export function faultOfReply(reply: SmtpReply): Fault | undefined {
  if (isLogin(reply)) return "authentication"
  if (reply.code === 421) return "infrastructure" // RFC 5321, 3.8: it closes, whoever was meant
  return isSendingLimit(reply) || isRefusalOfUs(reply) ? "infrastructure" : undefined
}

/** What an end before any recipient was named says about us; undefined: it was the message. */
export function faultIn(error: Error): Fault | undefined {
  if (error instanceof Trouble) return "connection"
  if (!(error instanceof Refusal)) return undefined
  const { phase, reply } = error
  if (isLogin(reply) || (phase === "AUTH" && reply.code >= 500)) return "authentication"
  return phase === "MAIL" && isTooLarge(reply) ? undefined : "infrastructure"
}
