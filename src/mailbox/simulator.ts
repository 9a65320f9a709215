import { comparable } from "../lib/address"

/** Addresses here answer as their name says; every other address is delivered. */
export const SIMULATOR_DOMAIN = "mailbox.test"

export interface Refusal {
  code: number
  text: string
}

type Role = "bounce" | "softbounce" | "reject" | "defer" | "slow" | "complain"

const ROLES = new Set<string>(["bounce", "softbounce", "reject", "defer", "slow", "complain"])

const AT_RECIPIENT: Partial<Record<Role, Refusal>> = {
  bounce: { code: 550, text: "5.1.1 There is nobody of this name here" },
  softbounce: { code: 451, text: "4.2.0 This mailbox is never ready" },
  reject: { code: 550, text: "5.7.1 Refused by policy" },
}

export const DEFERRED: Refusal = { code: 451, text: "4.3.0 Deferred once, try again" }

/** Whether the address plays a part; a tag (`bounce+anything@`) is no part of the name. */
export function roleOf(address: string): Role | undefined {
  const [local = "", domain] = comparable(address).split("@")
  const name = local.replace(/\+.*$/, "")
  return domain === SIMULATOR_DOMAIN && ROLES.has(name) ? (name as Role) : undefined
}

/** The answer to RCPT, or undefined: accepted. */
export function refusalOf(address: string): Refusal | undefined {
  const role = roleOf(address)
  return role && AT_RECIPIENT[role]
}

const MAX_REMEMBERED = 10_000

/** Remembers which messages were deferred already; the oldest are forgotten first. */
export function deferOnce(): (key: string) => boolean {
  const seen = new Set<string>()
  return (key) => {
    if (seen.has(key)) return false
    seen.add(key)
    if (seen.size > MAX_REMEMBERED) seen.delete(seen.values().next().value ?? "")
    return true
  }
}
