import { fail, type Problems } from "../core/errors"
import { type AuthEnvironment, redirectsOf } from "./environments"
import type { ApplicationType } from "./tables"

/** Of an application, and of an environment. */
export const MOST_ADDRESSES = 100
const MOST_CHARACTERS = 2048

/** Throws 422 `invalid_url` for an address that the environment does not list, character by character. */
export function requireRedirect(
  environment: AuthEnvironment,
  redirect_url: string,
  field = "redirect_url",
): void {
  if (redirectsOf(environment).includes(redirect_url)) return
  const reason = "This environment does not list this redirect URL. It compares every character."
  fail("invalid_url", reason, { field, reason })
}

export const REDIRECT_HINT =
  "The value must be a full https:// URL in its normal form, without *, #, user and password. Only this computer may have http://. Only native applications may have other schemes."

const ORIGIN_HINT =
  "The value must be one origin, such as https://app.example.com, without path and *. Only this computer may have http://. Only native applications may have other schemes."

/** Reads redirect URLs as they will be compared, each once. */
export const readRedirects = (
  given: string[],
  path: string,
  problems: Problems,
  type: ApplicationType,
) => readAll(given, path, problems, REDIRECT_HINT, (text) => isRedirect(text, type))

/** Reads origins as browsers send them (RFC 6454, section 6.2), each once. */
export const readOrigins = (
  given: string[],
  path: string,
  problems: Problems,
  type: ApplicationType,
) => readAll(given, path, problems, ORIGIN_HINT, (text) => isOrigin(text, type))

function readAll(
  given: string[],
  path: string,
  problems: Problems,
  hint: string,
  isRight: (text: string) => boolean,
): string[] {
  for (const [at, text] of given.entries())
    if (!isRight(text)) problems.add(`${path}.${at}`, "invalid_url", hint)
  return [...new Set(given)]
}

const isRedirect = (text: string, type: ApplicationType): boolean => {
  const url = safeUrl(text, type)
  return url !== undefined && (url.href === text || url.href === `${text}/`)
}

const isOrigin = (text: string, type: ApplicationType): boolean => {
  const url = safeUrl(text, type)
  return url !== undefined && url.host !== "" && text === `${url.protocol}//${url.host}`
}

/** What a URL can have beside letters; a fragment would hide what is added, and a star matches nothing. */
const PLAIN = /^[\x21-\x7e]+$/
const REFUSED = /[*#\\<>"'`{}|^]/

function safeUrl(text: string, type: ApplicationType): URL | undefined {
  if (text.length > MOST_CHARACTERS || !PLAIN.test(text) || REFUSED.test(text)) return undefined
  const url = URL.parse(text)
  if (url?.username !== "" || url.password !== "") return undefined
  if (url.protocol === "https:") return url
  if (url.protocol === "http:") return isLoopback(url.hostname) ? url : undefined
  return type === "native" && isAppScheme(url.protocol) ? url : undefined
}

const isLoopback = (hostname: string) =>
  hostname === "localhost" || hostname === "[::1]" || /^127\.\d+\.\d+\.\d+$/.test(hostname)

/** Schemes that have a meaning of their own on phones and in browsers, so that no application owns them. */
const TAKEN =
  /^(?:about|android-app|blob|chrome.*|content|data|facetime|file|filesystem|ftps?|geo|intent|ios-app|itms.*|jar|javascript|mailto|market|moz-extension|resource|sftp|sms|smsto|ssh|tel|vbscript|view-source|wss?):$/

const isAppScheme = (protocol: string) => protocol.length > 2 && !TAKEN.test(protocol)
