import type { KeyedSources } from "../templates/template-renderer"
import { MAIL_TYPES, type MailType } from "./environment-settings"
import { MAIL_VARIABLES } from "./mail-variables"
import { MAIL_WORDS, type MailLanguage, type MailWords } from "./mail-words"

/** The texts of a mail as Handlebars. */
export interface MailTemplate {
  subject: string
  html: string
  text: string
}

/** Those of a language, and of English where the language has none. */
export function defaultTemplate(type: MailType, locale: string): MailTemplate {
  return templates.get(`${type} ${languageOf(locale)}`) as MailTemplate
}

/** The same, ready to be rendered. */
export function defaultSources(type: MailType, locale: string, timezone: string): KeyedSources {
  const language = languageOf(locale)
  const texts = Object.entries(defaultTemplate(type, locale)).map(([part, source]) => {
    const mode: "html" | "text" = part === "html" ? "html" : "text"
    return { field: part, part, mode, source }
  })
  return {
    key: `auth ${type} ${language} ${timezone}`,
    sources: { texts, layouts: [], partials: {}, variables: [], locale: language, timezone },
  }
}

/** Of a language tag such as `de-AT`: its base. */
export function languageOf(locale: string): MailLanguage {
  const base = locale.split("-", 1)[0]?.toLowerCase() ?? ""
  return base in MAIL_WORDS ? (base as MailLanguage) : "en"
}

const has = (type: MailType, wanted: string): boolean =>
  MAIL_VARIABLES[type].some(({ key }) => key === wanted)

const P = '<p style="margin:0 0 16px;font-size:16px;line-height:24px">'
const CODE =
  '<p dir="ltr" style="margin:0 0 16px;font-size:32px;line-height:40px;letter-spacing:6px;font-weight:bold">{{code}}</p>'
const BUTTON =
  "display:inline-block;padding:12px 24px;border-radius:6px;background:{{primary_color}};color:{{primary_text}};font-weight:bold;text-decoration:none"
const FONT = "font-family:system-ui,-apple-system,'Segoe UI',Roboto,Arial,sans-serif"
const SMALL = "margin:0 0 16px;font-size:14px;line-height:20px"

const htmlOf = (type: MailType, language: string, words: MailWords): string => {
  const { subject, title = subject, text } = words.types[type]
  return `<!doctype html>
<html lang="${language}" dir="${words.direction}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{app_name}}</title>
</head>
<body style="margin:0;padding:24px 12px;background:#f4f4f5;color:#18181b;${FONT}">
<div style="max-width:480px;margin:0 auto;padding:32px;border-radius:8px;background:#ffffff;text-align:start">
{{#if logo_url}}<img src="{{logo_url}}" alt="{{app_name}}" height="40" style="margin:0 0 24px">{{/if}}
<h1 style="margin:0 0 16px;font-size:20px;line-height:28px">${title}</h1>
${P}${text}</p>
${[...actions(type, words), ...details(type, words)].join("\n")}
<p style="${SMALL}">${closing(type, words)}</p>
<p style="margin:0;font-size:14px;line-height:20px;color:#52525b">{{app_name}}{{#if support_url}} · <a href="{{support_url}}" style="color:#52525b">${words.help}</a>{{/if}}</p>
</div>
</body>
</html>
`
}

function actions(type: MailType, words: MailWords): string[] {
  if (!has(type, "link")) return has(type, "code") ? [CODE] : []
  const link = `<p style="margin:0 0 16px"><a href="{{link}}" style="${BUTTON}">${words.types[type].button}</a></p>`
  const or = has(type, "code") ? [`{{#if code}}${P}${words.or_code}</p>\n${CODE}{{/if}}`] : []
  const copy = `<p style="${SMALL}">${words.copy}<br><span dir="ltr" style="word-break:break-all">{{link}}</span></p>`
  return [link, ...or, copy]
}

const DETAILS = ["device", "ip", "time"] as const

const shownAs = (key: string) => (key === "time" ? '{{date time format="datetime"}}' : `{{${key}}}`)

const details = (type: MailType, words: MailWords): string[] =>
  has(type, "time")
    ? [
        P +
          DETAILS.map((key) => `{{#if ${key}}}${words[key]}: ${shownAs(key)}<br>{{/if}}`).join("") +
          "</p>",
      ]
    : []

/** How long it works, and what to do where somebody else asked for it. */
function closing(type: MailType, words: MailWords): string {
  if (has(type, "time")) return words.alarm
  const note = has(type, "link") ? words.link_note : words.code_note
  return `${note} ${words.ignore}`
}

const textOf = (type: MailType, words: MailWords): string => {
  const { subject, title = subject, text, button } = words.types[type]
  const link = has(type, "link") ? [`${button}:\n{{link}}`] : []
  const code = has(type, "code")
    ? [link.length > 0 ? `{{#if code}}${words.or_code} {{code}}{{/if}}` : "{{code}}"]
    : []
  const facts = has(type, "time")
    ? [DETAILS.map((key) => `{{#if ${key}}}${words[key]}: ${shownAs(key)}\n{{/if}}`).join("")]
    : []
  const foot = `{{app_name}}{{#if support_url}}\n${words.help}: {{support_url}}{{/if}}`
  const parts = [title, text, ...link, ...code, ...facts, closing(type, words), foot]
  return `${parts.map((part) => part.trimEnd()).join("\n\n")}\n`
}

const templates = new Map<string, MailTemplate>(
  Object.entries(MAIL_WORDS).flatMap(([language, words]) =>
    MAIL_TYPES.map((type): [string, MailTemplate] => [
      `${type} ${language}`,
      {
        subject: words.types[type].subject,
        html: htmlOf(type, language, words),
        text: textOf(type, words),
      },
    ]),
  ),
)
