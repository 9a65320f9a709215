import type { Fault } from "../../providers/provider"
import { isLogin, isRefusalOfUs, isSendingLimit, isTooLarge } from "../smtp/outcome"
import type { SmtpReply } from "../smtp/reply"
import { SmtpRefusal } from "../smtp/session"
import { SmtpConnectionError } from "../smtp/wire"

/** What a refusal at RCPT, at DATA or of the message says about us; mostly it is about them. */
export function faultOfReply(reply: SmtpReply): Fault | undefined {
  if (isLogin(reply)) return "authentication"
  if (reply.code === 421) return "infrastructure" // RFC 5321, 3.8: it closes, whoever was meant
  return isSendingLimit(reply) || isRefusalOfUs(reply) ? "infrastructure" : undefined
}

/** What an end before any recipient was named says about us; undefined: it was the message. */
export function faultIn(error: Error): Fault | undefined {
  if (error instanceof SmtpConnectionError) return "connection"
  if (!(error instanceof SmtpRefusal)) return undefined
  const { phase, reply } = error
  if (isLogin(reply) || (phase === "AUTH" && reply.code >= 500)) return "authentication"
  return phase === "MAIL" && isTooLarge(reply) ? undefined : "infrastructure"
}
