import { fail } from "../core/errors"
import { type Judging, NetError, vet } from "../core/net"

const LONGEST = 2048
const NAMES_MS = 3000

export interface AddressRules extends Judging {
  /** False where the operator takes plain http, too. */
  require_https: boolean
}

type Reason = "malformed" | "https_required" | "userinfo" | "port" | "blocked_address"

/**
 * Whether the host has an address now. Refuses (`invalid_url`, with `field` and `reason`) what no endpoint may be: neither http nor
 * https, a user name in it, a port other than 443, 8443 or 1024 and above, an address that is not
 * public and not on the operator's list, or one of our own listeners. A name that nobody can
 * resolve at the moment passes: its addresses are judged again before each attempt.
 */
export async function vetUrl(url: string, rules: AddressRules): Promise<boolean> {
  vetForm(url, rules)
  try {
    await vet(url, rules, AbortSignal.timeout(NAMES_MS))
    return true
  } catch (error) {
    if (!(error instanceof NetError)) throw error
    if (error.kind === "invalid_url")
      refuse("malformed", "The URL is not valid. Give an absolute https:// URL.")
    if (error.kind === "blocked_address") {
      refuse(
        "blocked_address",
        "The URL leads to an address that is not public. Use a public host, or ask the operator to allow it.",
      )
    }
    return false
  }
}

/** The part of `vetUrl` that asks no name server. */
export function vetForm(url: string, { require_https }: Pick<AddressRules, "require_https">): void {
  // The parser takes out line breaks and spaces; what is stored and shown would still hold them.
  const written = url.length <= LONGEST && !/[\s\p{C}]/u.test(url)
  const parsed = written && URL.canParse(url) ? new URL(url) : undefined
  if (!parsed || !/^https?:$/.test(parsed.protocol)) {
    refuse(
      "malformed",
      `The URL must be an absolute https:// URL of at most ${LONGEST} characters.`,
    )
  }
  if (parsed.username || parsed.password || EMPTY_USERINFO.test(url)) {
    refuse("userinfo", "The URL must not hold a user name or a password.")
  }
  if (require_https && parsed.protocol !== "https:") {
    refuse("https_required", "The URL must begin with https://.")
  }
  const port = Number(parsed.port || (parsed.protocol === "https:" ? 443 : 80))
  if (port < 1024 && port !== 443) refuse("port", "The port must be 443, 8443 or at least 1024.")
}

/** `https://@host/` has none to the parser; a person reads one, and a later parser may. */
const EMPTY_USERINFO = /^https?:[\\/]*[^\\/?#]*@/i

function refuse(reason: Reason, message: string): never {
  fail("invalid_url", message, { field: "url", reason })
}
