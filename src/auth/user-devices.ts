import { mailClientOf } from "../lib/mail-client"

/** In words, such as `Firefox on Linux`; null where a program says nothing of itself. */
export function deviceOf(user_agent: string | null): string | null {
  if (!user_agent) return null
  const { os } = mailClientOf(user_agent)
  return os ? `${familyOf(user_agent)} on ${os}` : familyOf(user_agent)
}

const LONGEST_FAMILY = 60

/** A browser without its version, or the first word that another program says of itself. */
export const familyOf = (user_agent: string): string =>
  mailClientOf(user_agent).client ?? (user_agent.split(/[/ ]/)[0] ?? "").slice(0, LONGEST_FAMILY)
