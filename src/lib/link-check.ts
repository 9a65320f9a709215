import { getDomain } from "tldts"
import type { ContentFinding } from "./content-finding"
import { htmlTokens } from "./html-tokens"
import { SHORTENERS } from "./spam-words"
import { attributeOf, decodeEntities } from "./text-from-html"

export interface HtmlLink {
  /** As it stands in the source, its character references decoded. */
  href: string
  /** What people see of it. */
  text: string
}

/** Bounds the work for one mail. */
const MOST_LINKS = 2_000
const MOST_SHOWN = 200

/** The links of an html source, in its order; the first 2,000 of them. */
export function linksOf(html: string): HtmlLink[] {
  const links: HtmlLink[] = []
  let open: HtmlLink | undefined
  for (const token of htmlTokens(html)) {
    if (token.kind === "text" && open && open.text.length < MOST_SHOWN) open.text += token.text
    if (token.kind !== "tag" || token.name !== "a") continue
    if (open) links.push(clean(open))
    if (links.length >= MOST_LINKS) return links
    const has_target = !token.closing && /\bhref\s*=/i.test(token.attributes)
    open = has_target
      ? { href: decodeEntities(attributeOf(token.attributes, "href")).trim(), text: "" }
      : undefined
  }
  return open ? [...links, clean(open)] : links
}

const clean = ({ href, text }: HtmlLink): HtmlLink => ({
  href,
  text: decodeEntities(text).replace(/\s+/g, " ").trim(),
})

/** Links that lead nowhere, without TLS, elsewhere than their text says, or over a shortener. */
export const linkFindings = (links: HtmlLink[]): ContentFinding[] => links.flatMap(findingsOf)

const OTHER_SCHEMES = /^(?:mailto|tel|sms|cid):/i

function findingsOf({ href, text }: HtmlLink): ContentFinding[] {
  if (href === "" || href === "#") {
    return [finding("empty", `The link ${quoted(text)} leads nowhere. Give it a target.`)]
  }
  if (href.startsWith("#") || OTHER_SCHEMES.test(href)) return []
  const url = URL.parse(href)
  if (!url || /\s/.test(href)) {
    return [finding("malformed", `The target ${quoted(href)} is no URL. Give it with https://.`)]
  }
  if (url.protocol !== "https:" && url.protocol !== "http:") {
    return [finding("scheme", `Mail programs do not open ${quoted(href)}. Use https.`)]
  }
  const all: ContentFinding[] = []
  if (url.protocol === "http:") {
    all.push(finding("without_https", `${quoted(href)} is without TLS. Use https.`))
  }
  if (SHORTENERS.test(url.hostname)) {
    all.push(finding("shortener", `${url.hostname} hides the target. Link to the target itself.`))
  }
  const shown = shownDomain(text)
  const target = getDomain(url.hostname)
  if (shown !== null && target !== null && shown !== target) {
    all.push(finding("other_domain", `The text says ${shown}, but the link leads to ${target}.`))
  }
  return all
}

const finding = (rule: string, detail: string): ContentFinding => ({ rule, detail })

const quoted = (text: string) => JSON.stringify(text.slice(0, MOST_SHOWN))

/** The registrable domain that a link's text names as an address; null where it is other words. */
function shownDomain(text: string): string | null {
  const host = /^(?:https?:\/\/)?([a-z0-9-]+(?:\.[a-z0-9-]+)+)(?:[/?#:]\S*)?$/i.exec(text)?.[1]
  return host ? getDomain(host) : null
}
