import { attributesIn, decodeEntities, htmlTokens } from "../lib/html-tokens"
import { imageType } from "../lib/image-type"
import { contentOf, isFile, type MailLeaf, readTree, textsOf } from "../lib/mail-tree"

export interface MailToShow {
  raw: Uint8Array
  /** The content security policy of the page. */
  policy: string
  scheme: HarmlessOptions["scheme"]
}

/** Of all inline images of a page, before base64. The rest of a mail with more is not shown. */
const MOST_IMAGE_BYTES = 10 * 1024 * 1024

/**
 * The html of a mail as a page of its own, made harmless, or undefined where the mail has none. Runs in
 * the worker. The policy stands in the page, too, for a copy of it.
 */
export function showMail({ raw, policy, scheme }: MailToShow): string | undefined {
  const { leaves } = readTree(raw)
  const bodies = leaves.filter((leaf) => !isFile(leaf))
  const html = textsOf(bodies, "text/html")
  if (html === null) return undefined
  const shown = harmlessHtml(html, { imageOf: imagesOf(leaves), scheme })
  const head = [
    '<!doctype html><html><head><meta charset="utf-8">',
    `<meta http-equiv="content-security-policy" content="${policy}">`,
    '<meta name="referrer" content="no-referrer">',
    '<meta name="viewport" content="width=device-width">',
    `<style>:root{color-scheme:${scheme}}</style>`,
  ]
  return `${head.join("")}${shown}`
}

/** Finds an inline image by its Content-ID: each is encoded once. */
function imagesOf(leaves: MailLeaf[]): HarmlessOptions["imageOf"] {
  const files = new Map<string, MailLeaf>()
  for (const leaf of leaves) {
    const { content_id } = leaf
    if (content_id !== null && !files.has(content_id)) files.set(content_id, leaf)
  }
  const known = new Map<string, string | undefined>()
  let bytes = 0
  return (content_id) => {
    if (known.has(content_id)) return known.get(content_id)
    const leaf = files.get(content_id)
    const content = leaf && contentOf(leaf)
    bytes += content?.length ?? 0
    const type = content && bytes <= MOST_IMAGE_BYTES ? imageType(content) : undefined
    const url = type && `data:${type};base64,${content?.toString("base64")}`
    known.set(content_id, url)
    return url
  }
}

interface HarmlessOptions {
  /** The `data:` URL of an inline image by its Content-ID; undefined where the mail has no such image. */
  imageOf: (content_id: string) => string | undefined
  /** Which of its colours a page with colours for dark screens shows. */
  scheme: "light" | "dark"
}

/** Elements that only show something. Of all others the tags are left out, and what stands in them stays. */
const ELEMENTS =
  /^(?:a|abbr|address|article|aside|b|bdi|bdo|big|blockquote|body|br|caption|center|cite|code|col|colgroup|dd|del|dfn|div|dl|dt|em|figcaption|figure|font|footer|h1|h2|h3|h4|h5|h6|head|header|hgroup|hr|html|i|img|ins|kbd|li|main|mark|nav|ol|p|pre|q|rp|rt|ruby|s|samp|section|small|span|strike|strong|style|sub|sup|table|tbody|td|tfoot|th|thead|time|title|tr|tt|u|ul|var|wbr)$/

const ATTRIBUTES =
  /^(?:abbr|align|alt|bgcolor|border|cellpadding|cellspacing|char|charoff|cite|class|clear|color|cols|colspan|datetime|dir|face|frame|headers|height|hspace|id|lang|media|nowrap|reversed|role|rows|rowspan|rules|scope|size|span|start|style|summary|text|title|type|valign|value|vlink|vspace|width)$/

const SHOWN_IMAGE = /^data:image\/(?:png|jpe?g|gif|webp|avif|bmp|x-icon);base64,[a-z0-9+/=\s]*$/i
const LINK = /^(?:https?:\/\/|mailto:)/i

/**
 * The same html with nothing in it that runs, loads, sends or leads away by itself: no script, handler,
 * form, frame, style sheet or image from elsewhere. Inline images stand in it as `data:` URLs. It reads
 * the source once, whatever it is. The policy of the page that shows it is the wall; this is the second
 * one, for a page that somebody saves.
 */
export function harmlessHtml(html: string, options: HarmlessOptions): string {
  const parts: string[] = []
  for (const token of htmlTokens(html)) {
    if (token.kind === "text") parts.push(plainText(token.text))
    else if (token.kind === "raw") parts.push(rawText(token.name, token.text, options))
    else if (token.kind === "tag" && ELEMENTS.test(token.name) && token.end <= html.length) {
      const { name, closing, attributes } = token
      parts.push(closing ? `</${name}>` : `<${name}${attributesOf(name, attributes, options)}>`)
    }
  }
  return parts.join("")
}

/** Character references stay: they are no markup. */
const plainText = (text: string): string => text.replaceAll("<", "&lt;")

function rawText(name: string, text: string, options: HarmlessOptions): string {
  if (name === "script") return ""
  return name === "style" ? harmlessCss(text, options) : plainText(text)
}

function attributesOf(element: string, source: string, options: HarmlessOptions): string {
  const parts: string[] = []
  for (const { name, value } of attributesIn(source)) {
    const kept = shownValue(element, name, decodeEntities(value), options)
    if (kept !== undefined) parts.push(` ${name}="${Bun.escapeHTML(kept)}"`)
  }
  if (element === "a") parts.push(IN_NEW_TAB)
  return parts.join("")
}

/** The mail stays where it is, and the page of the link learns nothing about it. */
const IN_NEW_TAB = ' target="_blank" rel="noreferrer noopener"'

function shownValue(element: string, name: string, value: string, options: HarmlessOptions) {
  if (name === "style") return harmlessCss(value, options)
  if (name === "src" && element === "img") return imageAt(value, options)
  if (name === "background") return imageAt(value, options)
  if (name === "href" && element === "a") return LINK.test(value.trim()) ? value.trim() : undefined
  return ATTRIBUTES.test(name) || /^aria-[a-z]+$/.test(name) ? value : undefined
}

function imageAt(address: string, { imageOf }: HarmlessOptions): string | undefined {
  const target = address.trim()
  if (/^cid:/i.test(target)) return imageOf(contentIdIn(target.slice(4)))
  return SHOWN_IMAGE.test(target) ? target : undefined
}

/** RFC 2392: an address of this kind is percent-encoded. */
function contentIdIn(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

const URLS = /url\(\s*(?:"([^"]*)"|'([^']*)'|([^)]*))\s*\)?/gi

/** The media query for dark screens, as one that every screen fits, or none. */
const DARK = /\(\s*prefers-color-scheme\s*:\s*dark\s*\)/gi
const LIGHT = /\(\s*prefers-color-scheme\s*:\s*light\s*\)/gi
const ALWAYS = "(min-width: 0px)"
const NEVER = "(max-width: 0px)"

/** All of a row, since what is left of one could end the style sheet, and begin a tag behind it. */
const TAG_BEGINS = /<+(?=[/!?a-z])/gi

function harmlessCss(css: string, options: HarmlessOptions): string {
  const is_dark = options.scheme === "dark"
  return css
    .replace(/@import\b[^;{}]*;?/gi, "")
    .replace(URLS, (_, double, single, bare) => {
      const image = imageAt(String(double ?? single ?? bare ?? ""), options)
      return image === undefined ? "none" : `url("${image.replace(/\s/g, "")}")`
    })
    .replace(DARK, is_dark ? ALWAYS : NEVER)
    .replace(LIGHT, is_dark ? NEVER : ALWAYS)
    .replace(TAG_BEGINS, "")
}
