import { linksInHtml, linksInText, type MailLink } from "../lib/mail-links"
import { headerFields } from "../lib/mail-text"
import { isUnsubscribeSign } from "./unsubscribe-signs"

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

/** The pages of this server on which a recipient unsubscribes or chooses. */
const OWN_PAGES = /^\/[up]\/[^/]+$/

/**
 * The http and https addresses of a mail, each once, without the part behind `#`. Those of the text are
 * listed where there is no html. They always tell which address may end a subscription.
 */
export function linkTargets(
  raw: Uint8Array,
  { html, text }: { html: string | null; text: string | null },
): LinkTarget[] {
  const listed = targetsOf(linksInHtml(html ?? ""))
  const named = targetsOf(linksInText(text ?? ""))
  const marked = [...listed, ...named].filter(({ is_unsubscribe }) => is_unsubscribe)
  const ends = unsubscribeAddresses(raw).union(new Set(marked.map(({ url }) => url)))
  const urls = new Set((html === null ? named : listed).map(({ url }) => url))
  return [...urls].slice(0, MOST_TARGETS).map((url) => ({ url, is_unsubscribe: ends.has(url) }))
}

const targetsOf = (links: MailLink[]): LinkTarget[] =>
  links.flatMap(({ href, surroundings }) => {
    const url = URL.parse(href)
    if (!url || !/^https?:$/.test(url.protocol) || href.length > MOST_CHARACTERS) return []
    const is_unsubscribe = isUnsubscribeSign(surroundings) || isUnsubscribe(url)
    return [{ url: withoutHash(url), is_unsubscribe }]
  })

/** Whether an address looks as if it ended a subscription. */
export const isUnsubscribe = ({ hostname, pathname, search, hash }: URL): boolean =>
  isUnsubscribeSign(decoded(decoded(`${hostname}${pathname}${search}${hash}`))) ||
  OWN_PAGES.test(pathname)

/** Piece by piece, because one wrong escape must not hide the rest. */
const decoded = (text: string): string =>
  text.replace(/(?:%[0-9a-f]{2})+/gi, (escapes) => {
    try {
      return decodeURIComponent(escapes)
    } catch {
      return " "
    }
  })

/** Those of `List-Unsubscribe` (RFC 2369): a program may press them with one click (RFC 8058). */
export function unsubscribeAddresses(raw: Uint8Array): Set<string> {
  const named = headerFields(raw).flatMap(([name, value]) =>
    /^list-(?:unsubscribe|subscribe|post|owner)$/.test(name)
      ? [...value.matchAll(/<\s*(https?:[^>]+)>|(https?:[^\s,<>]+)/gi)]
      : [],
  )
  const urls = named.map(
    ([, address, bare = ""]) => URL.parse((address ?? bare).replace(/\s+/g, "")), // a long address may be folded
  )
  return new Set(urls.flatMap((url) => (url ? [withoutHash(url)] : [])))
}

/** As a server is asked for it. */
export function withoutHash(url: URL): string {
  const asked = new URL(url)
  asked.hash = ""
  return asked.href
}
