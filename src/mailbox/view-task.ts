import { attributesIn, decodeEntities, htmlTokens } from "../lib/html-tokens"
import { imageType } from "../lib/image-type"
import { contentOf, isFile, type MailLeaf, readTree, textsOf } from "../lib/mail-tree"
import { untrackedHtml } from "../tracking/tracked-html"

export interface MailToShow {
  raw: Uint8Array
  /** The content security policy of the page. */
  policy: string
  scheme: HarmlessOptions["scheme"]
  /** Undefined: nobody wants them, and none was loaded. */
  remote?: RemoteImages | undefined
}

/** Images of other servers that were loaded for a page. */
export interface RemoteImages {
  by_url: Map<string, Uint8Array>
  /** Stands above the mail. */
  note: string
}

/** Of the images of each kind in a page, before base64. The rest of a mail with more is not shown. */
const MOST_IMAGE_BYTES = 10 * 1024 * 1024

/**
 * The html of a mail as a page of its own, made harmless, or undefined where the mail has none. Runs in
 * the worker. The policy stands in the page, too, for a copy of it.
 */
export function showMail({ raw, policy, scheme, remote }: MailToShow): string | undefined {
  const { leaves } = readTree(raw)
  const html = htmlOf(leaves)
  if (html === null) return undefined
  const remoteOf = remote && dataUrls((url) => remote.by_url.get(url))
  const images = { imageOf: imagesOf(leaves), remoteOf }
  const shown = harmlessHtml(html, { ...images, scheme })
  const head = [
    '<!doctype html><html><head><meta charset="utf-8">',
    `<meta http-equiv="content-security-policy" content="${policy}">`,
    '<meta name="referrer" content="no-referrer">',
    '<meta name="viewport" content="width=device-width">',
    `<style>:root{color-scheme:${scheme}}</style>`,
  ]
  return `${head.join("")}${remote ? noteAbove(remote.note) : ""}${shown}`
}

const htmlOf = (leaves: MailLeaf[]) =>
  textsOf(
    leaves.filter((leaf) => !isFile(leaf)),
    "text/html",
  )

export interface ImagesToFind {
  raw: Uint8Array
  /** Of the tokens of tracking. */
  key: Uint8Array
}

/** Nobody needs to know of more. */
const MOST_COUNTED = 1000

/**
 * The addresses of the images that a mail would load from other servers, each once and in the order of the mail, 1,000 at
 * most, without this server's own pixel. Runs in the worker.
 */
export function remoteImages({ raw, key }: ImagesToFind): string[] {
  const urls = new Set<string>()
  const remoteOf = (url: string) => void (urls.size < MOST_COUNTED && urls.add(url))
  const html = htmlOf(readTree(raw).leaves) ?? ""
  harmlessHtml(untrackedHtml(html, key), { imageOf: () => undefined, remoteOf, scheme: "light" })
  return [...urls]
}

/** The mail's own style reaches no style of an element that is important. */
const NOTE_STYLE = Object.entries({
  all: "initial",
  display: "block",
  padding: "8px 12px",
  font: "13px/1.4 system-ui, sans-serif",
  color: "CanvasText",
  background: "Canvas",
  "border-bottom": "1px solid GrayText",
})
  .map(([name, value]) => `${name}:${value}!important`)
  .join(";")

const noteAbove = (text: string): string =>
  `<p dir="ltr" style="${NOTE_STYLE}">${Bun.escapeHTML(text)}</p>`

/** Finds an inline image by its Content-ID. */
function imagesOf(leaves: MailLeaf[]): HarmlessOptions["imageOf"] {
  const files = new Map<string, MailLeaf>()
  for (const leaf of leaves) {
    const { content_id } = leaf
    if (content_id !== null && !files.has(content_id)) files.set(content_id, leaf)
  }
  return dataUrls((content_id) => {
    const leaf = files.get(content_id)
    return leaf && contentOf(leaf)
  })
}

/**
 * Images as `data:` URLs by their names: each is encoded once. One that is shown twice counts twice, because it stands
 * in the page twice. The rest of more than 10 MB is not shown.
 */
function dataUrls(contentOf: (name: string) => Uint8Array | undefined) {
  const known = new Map<string, { url: string; bytes: number } | undefined>()
  let room = MOST_IMAGE_BYTES
  const encode = (name: string) => {
    const content = contentOf(name)
    const type = content && content.length <= room ? imageType(content) : undefined
    if (!content || !type) return undefined
    return { url: `data:${type};base64,${content.toBase64()}`, bytes: content.length }
  }
  return (name: string): string | undefined => {
    const image = known.has(name) ? known.get(name) : encode(name)
    known.set(name, image)
    if (!image || image.bytes > room) return undefined
    room -= image.bytes
    return image.url
  }
}

interface HarmlessOptions {
  /** The `data:` URL of an inline image by its Content-ID; undefined where the mail has no such image. */
  imageOf: (content_id: string) => string | undefined
  /** The same of an image on another server by its address. Default: no such image is shown. */
  remoteOf?: ((url: string) => string | undefined) | undefined
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

function imageAt(address: string, { imageOf, remoteOf }: HarmlessOptions): string | undefined {
  const target = address.trim()
  if (/^cid:/i.test(target)) return imageOf(contentIdIn(target.slice(4)))
  if (SHOWN_IMAGE.test(target)) return target
  const url = remoteOf && remoteUrl(target)
  return url === undefined ? undefined : remoteOf?.(url)
}

const MOST_CHARACTERS = 4_000

/** An address without a scheme takes that of the page, which a mail has not. */
function remoteUrl(target: string): string | undefined {
  if (target.length > MOST_CHARACTERS || !/^(?:https?:)?\/\//i.test(target)) return undefined
  const url = URL.parse(target, "https://mail.invalid")
  if (url) url.hash = ""
  return url?.href
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
    .replace(/@font-face\b[^{}]*(?:\{[^{}]*\}?)?/gi, "") // its addresses are no images
    .replace(URLS, (_, double, single, bare) => {
      const image = imageAt(String(double ?? single ?? bare ?? ""), options)
      return image === undefined ? "none" : `url("${image.replace(/\s/g, "")}")`
    })
    .replace(DARK, is_dark ? ALWAYS : NEVER)
    .replace(LIGHT, is_dark ? NEVER : ALWAYS)
    .replace(TAG_BEGINS, "")
}
