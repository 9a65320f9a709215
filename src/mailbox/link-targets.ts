import { linksOf } from "../lib/link-check"
import { headerFields } from "../lib/mail-text"

/** One address that a mail links. */
export interface LinkTarget {
  url: string
  /** A look at it could end a subscription, or answer in the reader's name: it is never fetched. */
  is_unsubscribe: boolean
}

/** More are not listed. */
const MOST_TARGETS = 200
/** No more than `untrackedHtml` reads, or a tracked link would be asked. */
const MOST_CHARACTERS = 2_000

const UNSUBSCRIBE =
  /unsub|opt[-_]?out|abmeld|abbestell|austrag|d[eé]sabonn|d[eé]sinscri|darse[-_ ]de[-_ ]baja|cancelar|disiscri|uitschrijv|afmeld|avregistr|wypisz|odhl[aá]sit|отпис|退订|配信停止|수신거부|list-manage|preferences?\b|subscription/iu

/** The pages of this server on which a recipient unsubscribes or chooses. */
const OWN_PAGES = /^\/[up]\/[^/]+$/

/** The http and https addresses of a mail, each once, without the part behind `#`. */
export function linkTargets(
  raw: Uint8Array,
  { html, text }: { html: string | null; text: string | null },
): LinkTarget[] {
  const announced = unsubscribeAddresses(raw)
  const found = new Map<string, boolean>()
  const links = html === null ? linksInText(text ?? "") : linksOf(html)
  for (const { href, text: words } of links) {
    const url = URL.parse(href)
    if (!url || !/^https?:$/.test(url.protocol) || href.length > MOST_CHARACTERS) continue
    url.hash = ""
    const is_unsubscribe = announced.has(url.href) || UNSUBSCRIBE.test(words) || isUnsubscribe(url)
    found.set(url.href, is_unsubscribe || (found.get(url.href) ?? false))
    if (found.size >= MOST_TARGETS) break
  }
  return [...found].map(([url, is_unsubscribe]) => ({ url, is_unsubscribe }))
}

/** Whether an address looks as if it ended a subscription. */
export const isUnsubscribe = (url: URL): boolean =>
  UNSUBSCRIBE.test(decoded(`${url.hostname}${url.pathname}${url.search}`)) ||
  OWN_PAGES.test(url.pathname)

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** Those of `List-Unsubscribe` (RFC 2369): a program may press them with one click (RFC 8058). */
export function unsubscribeAddresses(raw: Uint8Array): Set<string> {
  const fields = headerFields(raw).filter(([name]) =>
    /^list-(?:unsubscribe|subscribe|post|owner)$/.test(name),
  )
  const named = fields.flatMap(([, value]) => [...value.matchAll(/<\s*(https?:[^>\s]+)\s*>/gi)])
  return new Set(named.flatMap(([, address = ""]) => bare(address)))
}

function bare(address: string): string[] {
  const url = URL.parse(address)
  return url ? [withoutHash(url)] : []
}

/** As a server is asked for it. */
export function withoutHash(url: URL): string {
  const asked = new URL(url)
  asked.hash = ""
  return asked.href
}

/** Words before a link in a line say what it is for. */
function linksInText(text: string): { href: string; text: string }[] {
  return text.split("\n").flatMap((line) =>
    [...line.matchAll(/https?:\/\/[^\s<>"']{1,2000}/gi)].map(([address]) => ({
      href: address.replace(/[.,;:!?*)\]}]{1,10}$/, ""),
      text: line.slice(0, 200),
    })),
  )
}
