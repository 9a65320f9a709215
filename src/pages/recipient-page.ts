import type { ApiError } from "../core/errors"
import type { Branding } from "../identity/tables"
import { type Color, contrast, parseColor } from "../lib/color"
import { preferredLanguage } from "../lib/locale"
import { html, Markup, pageHeaders, wholePage } from "./html"
import { recipientStyle } from "./styles"
import { LANGUAGES, type PageLanguage, type UnsubscribeWords, WORDS } from "./unsubscribe-words"

export type FormFields = Record<string, string | undefined>

/** A request to one of the pages behind a link. */
export interface LinkVisit {
  request: Request
  token: string
  ip: string
}

/** What is shown where a request was refused before the page could be made. */
export function refusedVisit({ message, status }: ApiError): Response {
  const look = lookOf(new Request("http://page.test/"), null)
  const content = html`<p>${message}</p>`
  return recipientPage(look, { title: "That did not work", content, status })
}

/** What is behind a link that is incomplete, or never was one. */
export function notValid(request: Request): Response {
  const look = lookOf(request, null)
  const { invalid_title: title, invalid } = look.words
  return recipientPage(look, { title, content: html`<p>${invalid}</p>`, status: 404 })
}

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

interface RecipientPage {
  title: string
  content: Markup
  status?: number
  /** Where its form may lead, beside this server: browsers refuse redirects to anywhere else. */
  form_target?: string | undefined
}

/** A page for recipients of mail: one heading, the sender's branding, and a switch of languages. */
export function recipientPage(
  { language, words, branding }: PageLook,
  { title, content, status = 200, form_target }: RecipientPage,
): Response {
  const style = `${recipientStyle}${colorRule(branding?.primary_color)}`
  const name = branding?.name ?? undefined
  const page = wholePage({
    ...{ lang: language, dir: words.direction },
    title: name === undefined ? title : `${title} · ${name}`,
    head: html`<style>${new Markup(style)}</style>`,
    body: html`<main>
${branding && header(branding)}
<h1>${title}</h1>
${content}
${footer(language, words, branding)}
</main>`,
  })
  const logo = branding?.logo_url
  const images = logo ? `data: ${new URL(logo).origin}` : undefined
  const headers = pageHeaders(style, images, form_target && `'self' ${form_target}`)
  return new Response(page, { status, headers })
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
