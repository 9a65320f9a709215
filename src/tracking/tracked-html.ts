import { rewriteHtml } from "../lib/html-rewriting"
import { type TokenKeys, tokenKeys } from "../lib/sealed-token"
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
 * service (to unsubscribe, for preferences) and those that the mail names in List-Unsubscribe stay.
 */
export function trackedHtml(html: string, tracking: HtmlTracking): string {
  const { message_id, base_url, opens, clicks, untracked } = tracking
  const keys = keysOf(tracking.key)
  const urls = new Set(untracked.urls)
  const linkFor = (target: string) =>
    urls.has(target) || untracked.prefixes.some((prefix) => target.startsWith(prefix))
      ? undefined
      : `${base_url}/t/c/${clickTokenOf(keys, message_id, target)}`
  const ending = opens ? pixel(`${base_url}/t/o/${openTokenOf(keys, message_id)}.gif`) : ""
  return rewriteHtml(html, { linkFor: clicks ? linkFor : undefined, ending })
}

const pixel = (address: string) =>
  `<img src="${address}" width="1" height="1" alt="" style="display:block;width:1px;height:1px;border:0">`

/** A thread composes for one server, whose key stays the same. */
let known: { text: string; keys: TokenKeys } | undefined

function keysOf(key: Uint8Array): TokenKeys {
  const text = Buffer.from(key).toString("base64")
  if (known?.text !== text) known = { text, keys: tokenKeys(key) }
  return known.keys
}
