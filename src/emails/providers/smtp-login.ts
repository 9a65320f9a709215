import type { Extensions } from "../smtp/envelope"
import type { SmtpReply } from "../smtp/reply"

/** What is spoken here, the first of them preferred: one command instead of three. */
const MECHANISMS = ["PLAIN", "LOGIN"] as const

/**
 * The mechanism for the login, of those that the server offers: RFC 4954, 4 allows no other, and
 * a password must not travel to who did not ask for it.
 */
export function mechanismOf(extensions: Extensions): (typeof MECHANISMS)[number] | undefined {
  const offered = offeredBy(extensions)
  return MECHANISMS.find((one) => offered.includes(one))
}

/** Why there is none, in the place of the refusal (RFC 4954, 4) that the server would have given. */
export function noMechanism(extensions: Extensions): SmtpReply {
  const offered = offeredBy(extensions).filter((name) => name !== "")
  const fact =
    offered.length > 0
      ? `the server accepts only ${offered.join(", ")} as login (AUTH), not PLAIN or LOGIN`
      : "the server offers no login (AUTH)"
  const advice = extensions.has("STARTTLS") ? " without TLS. Set tls to starttls" : ""
  return { code: 504, enhanced: "5.5.4", text: `${fact}${advice}`, lines: [] }
}

const offeredBy = (extensions: Extensions) =>
  (extensions.get("AUTH") ?? "").toUpperCase().split(/[ =]+/)
