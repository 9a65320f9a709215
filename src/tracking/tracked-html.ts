import { isAscii } from "../lib/address"
import { fieldOf, headOf, mapHtml } from "../lib/html-parts"
import { rewriteHtml } from "../lib/html-rewriting"
import { type TokenKeys, tokenKeys } from "../lib/sealed-token"
import { hasLongLine, shortLines } from "../lib/transport-encoding"
import { clickTokenOf, openTokenOf } from "./tracking-tokens"

/** What of a mail is tracked, as it travels to the thread that composes the mail. */
export interface HtmlTracking {
  message_id: string
  /** Of the tokens. */
  key: Uint8Array
  /** Where pixel and links lead: an address without a slash at its end. */
  base_url: string
  opens: boolean
  clicks: boolean
  /** Links that stay as they are: addresses, and beginnings of addresses. */
  untracked: { urls: string[]; prefixes: string[] }
}

/**
 * The html with the pixel and the tracked links. The same input gives the same bytes. Links of this
 * service (to unsubscribe, for preferences) and those that the mail names in List-Unsubscribe stay;
 * without `is_unicode` also those outside ASCII.
 */
export function trackedHtml(html: string, tracking: HtmlTracking, is_unicode = true): string {
  const { message_id, base_url, opens, clicks, untracked } = tracking
  const keys = keysOf(tracking.key)
  const urls = new Set(untracked.urls)
  const linkFor = (target: string) =>
    urls.has(target) ||
    untracked.prefixes.some((prefix) => target.startsWith(prefix)) ||
    (!is_unicode && !isAscii(target))
      ? undefined
      : `${base_url}/t/c/${clickTokenOf(keys, message_id, target)}`
  const ending = opens ? pixel(`${base_url}/t/o/${openTokenOf(keys, message_id)}.gif`) : ""
  return rewriteHtml(html, { linkFor: clicks ? linkFor : undefined, ending })
}

const pixel = (address: string) =>
  `<img src="${address}" width="1" height="1" alt="" style="display:block;width:1px;height:1px;border:0">`

/**
 * As `trackedHtml` for a message that was submitted as bytes: its first html gets the pixel, and every
 * html tracked links. Lines become no longer than SMTP allows.
 */
export function trackedMessage(raw: Uint8Array, tracking: HtmlTracking): Uint8Array {
  let opens = tracking.opens
  const { prefixes } = tracking.untracked
  const untracked = { prefixes, urls: linksToUnsubscribe(fieldOf(headOf(raw), "list-unsubscribe")) }
  const tracked = mapHtml(raw, (html, is_unicode) => {
    const changed = trackedHtml(html, { ...tracking, untracked, opens }, is_unicode)
    opens = false
    return changed
  })
  return hasLongLine(tracked) && !hasLongLine(raw) ? shortLines(tracked) : tracked
}

/** The web addresses in the value of List-Unsubscribe (RFC 2369, 3.2). */
export const linksToUnsubscribe = (value: string): string[] =>
  [...value.matchAll(/<\s*(https?:[^>]+?)\s*>/gi)].map(([, url = ""]) => url)

/** A thread composes for one server, whose key stays the same. */
let known: { text: string; keys: TokenKeys } | undefined

/** The keys of a base key. The last ones are remembered. */
export function keysOf(key: Uint8Array): TokenKeys {
  const text = Buffer.from(key).toString("base64")
  if (known?.text !== text) known = { text, keys: tokenKeys(key) }
  return known.keys
}
