import type { Branding } from "../identity/tables"
import { type Color, contrast, parseColor } from "../lib/color"
import { preferredLanguage } from "../lib/locale"
import { html, Markup, pageHeaders } from "./html"
import { recipientStyle } from "./styles"
import { LANGUAGES, type PageLanguage, type UnsubscribeWords, WORDS } from "./unsubscribe-words"

/** How a page looks and reads for the person that opened it. */
export interface PageLook {
  language: PageLanguage
  words: UnsubscribeWords
  /** Null: the sender is not known, as behind a link that is not valid. */
  branding: Branding | null
}

/** The language is what the address says (`?lang=`), else what the browser prefers, else English. */
export function lookOf(request: Request, branding: Branding | null): PageLook {
  const asked = new URL(request.url).searchParams.get("lang")
  const language =
    LANGUAGES.find((one) => one === asked) ??
    preferredLanguage(request.headers.get("accept-language") ?? "", LANGUAGES) ??
    "en"
  return { language, words: WORDS[language], branding }
}

/** A page for recipients of mail: one heading, the sender's branding, and a switch of languages. */
export function recipientPage(
  { language, words, branding }: PageLook,
  { title, content, status = 200 }: { title: string; content: Markup; status?: number },
): Response {
  const style = `${recipientStyle}${colorRule(branding?.primary_color)}`
  const name = branding?.name ?? undefined
  const page = html`<!doctype html>
<html lang="${language}" dir="${words.direction}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${name === undefined ? title : `${title} · ${name}`}</title>
<link rel="icon" href="data:,">
<style>${new Markup(style)}</style>
</head>
<body>
<main>
${branding && header(branding)}
<h1>${title}</h1>
${content}
${footer(language, words, branding)}
</main>
</body>
</html>
`
  return new Response(page.text, { status, headers: headersOf(style, branding) })
}

/** None of these pages may be kept, framed, or tell its address to another site. */
function headersOf(style: string, branding: Branding | null) {
  const { logo_url = null } = branding ?? {}
  const images = logo_url === null ? "data:" : `data: ${new URL(logo_url).origin}`
  return { ...pageHeaders(style, "'self'", images), ...UNKEPT }
}

export const UNKEPT = {
  "cache-control": "no-store",
  "x-frame-options": "DENY",
  "x-robots-tag": "noindex",
  "referrer-policy": "no-referrer",
}

function header({ name, logo_url }: Branding): Markup | undefined {
  if (logo_url !== null) return html`<header><img src="${logo_url}" alt="${name ?? ""}"></header>`
  return name === null ? undefined : html`<header><p><bdi>${name}</bdi></p></header>`
}

function footer(language: PageLanguage, words: UnsubscribeWords, branding: Branding | null) {
  const help = branding?.support_url
  return html`<footer>
${help && html`<p><a href="${help}" rel="noopener noreferrer">${words.help}</a></p>`}
<nav aria-label="${words.language}">${LANGUAGES.map(
    (one) => html`
<a href="?lang=${one}" lang="${one}" hreflang="${one}"${one === language && CURRENT}>${WORDS[one].name}</a>`,
  )}
</nav>
</footer>`
}

const CURRENT = new Markup(' aria-current="true"')

const WHITE: Color = [255, 255, 255]
const BLACK: Color = [0, 0, 0]

/** The sender's color for buttons. Of black and white, that text is on it which is easier to read. */
function colorRule(primary_color: string | null | undefined): string {
  const color = parseColor(primary_color ?? undefined)
  if (!color) return ""
  const ink = contrast(color, WHITE) >= contrast(color, BLACK) ? "#fff" : "#000"
  return `:root{--accent:rgb(${color.join(" ")});--on-accent:${ink}}\n`
}
