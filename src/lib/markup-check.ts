import { type ContentFinding, type PlacedFinding, withLines } from "./content-finding"
import { htmlTokens } from "./html-tokens"

const VOID = new Set(
  "area base br col embed hr img input link meta param source track wbr !doctype".split(" "),
)

/** HTML lets their end tags be left out (HTML Living Standard, 13.1.2.4). */
const OPTIONAL = new Set(
  "p li dt dd tr td th thead tbody tfoot option optgroup colgroup html head body".split(" "),
)

/** A mail with more nested elements is broken, or made to be. */
const MOST_OPEN = 1_000

interface OpenTag {
  name: string
  start: number
}

/** Tags without an end, end tags without a beginning, and elements that are not closed. */
export function markupFaults(html: string): ContentFinding[] {
  const found: PlacedFinding[] = []
  const open: OpenTag[] = []
  for (const token of htmlTokens(html)) {
    if (token.kind !== "tag") continue
    const { name, closing, attributes, start, end } = token
    if (end > html.length) {
      found.push(fault(start, `<${name}> has no end. Add the missing > or quote.`))
      break
    }
    if (VOID.has(name) || /^[!?]/.test(name)) continue
    if (closing) closeTag(open, token, found)
    else if (!attributes.endsWith("/") && open.length < MOST_OPEN) open.push({ name, start })
  }
  for (const { name, start } of open) if (!OPTIONAL.has(name)) found.push(unclosed(name, start))
  const unended = unendedComment(html)
  if (unended !== undefined) found.push(fault(unended, "A comment has no end."))
  return withLines(html, found)
}

function closeTag(open: OpenTag[], { name, start }: OpenTag, found: PlacedFinding[]) {
  const at = open.findLastIndex((one) => one.name === name)
  if (at === -1) {
    const detail = `</${name}> closes nothing. Remove it, or add <${name}> before it.`
    if (!OPTIONAL.has(name)) found.push(fault(start, detail))
    return
  }
  for (const inner of open.splice(at).slice(1)) {
    if (!OPTIONAL.has(inner.name)) found.push(unclosed(inner.name, inner.start))
  }
}

const unclosed = (name: string, at: number) => fault(at, `<${name}> is not closed. Add </${name}>.`)

const fault = (at: number, detail: string): PlacedFinding => ({ rule: "markup", at, detail })

function unendedComment(html: string): number | undefined {
  const last = html.lastIndexOf("<!--")
  return last !== -1 && html.indexOf("-->", last) === -1 ? last : undefined
}

/** A feature of html or CSS that some mail programs do not show. */
export interface UnsupportedFeature {
  feature: string
  count: number
  programs: { name: string; support: "partial" | "no" }[]
}

type Support = [name: string, support: "partial" | "no"]

const EVERY: Support[] = [["all mail programs", "no"]]
const OUTLOOK: Support[] = [["Outlook for Windows", "no"]]
const GMAIL_AND_OUTLOOK: Support[] = [
  ["Gmail", "no"],
  ["Outlook for Windows", "no"],
]

const ELEMENTS: Record<string, Support[]> = {
  script: EVERY,
  iframe: EVERY,
  object: EVERY,
  embed: EVERY,
  canvas: EVERY,
  base: EVERY,
  form: [["Gmail", "partial"], ...OUTLOOK],
  input: [["Gmail", "partial"], ...OUTLOOK],
  select: [["Gmail", "partial"], ...OUTLOOK],
  textarea: [["Gmail", "partial"], ...OUTLOOK],
  video: GMAIL_AND_OUTLOOK,
  audio: GMAIL_AND_OUTLOOK,
  svg: GMAIL_AND_OUTLOOK,
}

const STYLES: [feature: string, form: RegExp, programs: Support[]][] = [
  ["position", /position\s*:\s*(?:fixed|absolute|sticky)/gi, GMAIL_AND_OUTLOOK],
  ["flex layout", /display\s*:\s*(?:inline-)?flex/gi, OUTLOOK],
  ["grid layout", /display\s*:\s*(?:inline-)?grid/gi, [["Gmail", "partial"], ...OUTLOOK]],
  ["background image", /background(?:-image)?\s*:[^;]{0,200}url\(/gi, OUTLOOK],
  ["custom property", /var\(\s*--/gi, GMAIL_AND_OUTLOOK],
  ["calc()", /calc\(/gi, [["Gmail", "partial"], ...OUTLOOK]],
  ["@import", /@import\b/gi, GMAIL_AND_OUTLOOK],
  ["@font-face", /@font-face\b/gi, GMAIL_AND_OUTLOOK],
  ["animation", /@keyframes\b|animation(?:-name)?\s*:/gi, GMAIL_AND_OUTLOOK],
]

/** What of the source common mail programs leave out, each feature once, in the order of the lists. */
export function unsupportedFeatures(html: string): UnsupportedFeature[] {
  const counts = new Map<string, number>()
  const count = (feature: string, by = 1) => counts.set(feature, (counts.get(feature) ?? 0) + by)
  const styles: string[] = []
  for (const token of htmlTokens(html)) {
    if (token.kind === "raw" && token.name === "style") styles.push(token.text)
    if (token.kind !== "tag" || token.closing) continue
    const { name, attributes } = token
    if (Object.hasOwn(ELEMENTS, name)) count(`<${name}>`)
    if (name === "link" && /rel\s*=\s*["']?stylesheet/i.test(attributes)) count(STYLESHEET)
    const style = /\bstyle\s*=\s*(?:"([^"]*)"|'([^']*)')/i.exec(attributes)
    if (style) styles.push(style[1] ?? style[2] ?? "")
  }
  const css = styles.join("\n")
  for (const [feature, form] of STYLES) count(feature, css.match(form)?.length ?? 0)
  return KNOWN.flatMap(([feature, programs]) => {
    const times = counts.get(feature) ?? 0
    const named = programs.map(([name, support]) => ({ name, support }))
    return times > 0 ? [{ feature, count: times, programs: named }] : []
  })
}

const STYLESHEET = "linked style sheet"

const KNOWN: [string, Support[]][] = [
  ...Object.entries(ELEMENTS).map(([name, programs]): [string, Support[]] => [
    `<${name}>`,
    programs,
  ]),
  [STYLESHEET, GMAIL_AND_OUTLOOK],
  ...STYLES.map(([feature, , programs]): [string, Support[]] => [feature, programs]),
]
