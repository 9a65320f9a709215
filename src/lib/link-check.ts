import { getDomain } from "tldts"
import type { ContentFinding } from "./content-finding"
import type { MailLink } from "./mail-links"
import { SHORTENERS } from "./spam-words"

type CheckedLink = Pick<MailLink, "href" | "text">

/** Links that lead nowhere, without TLS, elsewhere than their text says, or over a shortener. */
export const linkFindings = (links: CheckedLink[]): ContentFinding[] => links.flatMap(findingsOf)

const OTHER_SCHEMES = /^(?:mailto|tel|sms|cid):/i

function findingsOf({ href, text }: CheckedLink): ContentFinding[] {
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

const MOST_SHOWN = 200

const quoted = (text: string) => JSON.stringify(text.slice(0, MOST_SHOWN))

/** The registrable domain that a link's text names as an address; null where it is other words. */
function shownDomain(text: string): string | null {
  const host = /^(?:https?:\/\/)?([a-z0-9-]+(?:\.[a-z0-9-]+)+)(?:[/?#:]\S*)?$/i.exec(text)?.[1]
  return host ? getDomain(host) : null
}
