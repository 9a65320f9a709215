import { fail } from "../core/errors"
import { type AddressPolicy, assertPublic, NetError } from "../core/net"

const LONGEST = 2048
const NAMES_MS = 3000

export interface EndpointUrlRules extends AddressPolicy {
  /** False where the operator takes plain http, too. */
  require_https: boolean
}

type Reason = "malformed" | "https_required" | "userinfo" | "port" | "blocked_address"

/**
 * Whether the host has an address now. Refuses a URL that is not http(s), that holds a user name,
 * whose port is not 443 or at least 1024, or whose address is not public, not on the operator's list,
 * or one of our own listeners: `invalid_url`, with `field` and `reason`. A name without an address
 * passes, because its addresses are checked again before each attempt.
 */
export async function assertPublicUrl(url: string, rules: EndpointUrlRules): Promise<boolean> {
  vetForm(url, rules)
  try {
    await assertPublic(url, rules, AbortSignal.timeout(NAMES_MS))
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

/** The checks of `vetUrl` that need no DNS. */
export function vetForm(
  url: string,
  { require_https }: Pick<EndpointUrlRules, "require_https">,
): void {
  // The parser removes line breaks and spaces, but the stored URL would still hold them.
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

/** `https://@host/` has no user name for this parser. A person or another parser may see one. */
const EMPTY_USERINFO = /^https?:[\\/]*[^\\/?#]*@/i

function refuse(reason: Reason, message: string): never {
  fail("invalid_url", message, { field: "url", reason })
}
