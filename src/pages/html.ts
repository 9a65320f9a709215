/** Markup that is safe to insert as it is. Only `html` makes it. */
export class Markup {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

type Insert = string | number | Markup | Insert[] | undefined | null | false

/** A template whose inserts are escaped unless they are markup; undefined, null and false are nothing. */
export const html = (parts: TemplateStringsArray, ...inserts: Insert[]): Markup =>
  new Markup(String.raw({ raw: parts }, ...inserts.map(textOf)))

function textOf(insert: Insert): string {
  if (insert === undefined || insert === null || insert === false) return ""
  if (Array.isArray(insert)) return insert.map(textOf).join("")
  return insert instanceof Markup ? insert.text : escaped(String(insert))
}

const ESCAPES: Record<string, string> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
}

const escaped = (text: string) => text.replace(/[&<>"']/g, (char) => ESCAPES[char] ?? char)

interface PageParts {
  title: string
  /** What stands in the head behind the title. */
  head: Markup
  body: Markup
  lang?: string
  dir?: "ltr" | "rtl"
}

/** A whole page. */
export const wholePage = ({ title, head, body, lang = "en", dir }: PageParts): string =>
  html`<!doctype html>
<html lang="${lang}"${dir && html` dir="${dir}"`}>
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
<link rel="icon" href="data:,">
${head}
</head>
<body>
${body}
</body>
</html>
`.text

/** Escaped text in which `this` becomes code. */
export const prose = (text: string): Markup =>
  html`${text.split("`").map((part, at) => (at % 2 === 1 ? html`<code>${part}</code>` : part))}`

/** None of the pages without script may be kept, framed, or tell its address to another site. */
export const unkept = {
  "content-type": "text/html;charset=utf-8",
  "cache-control": "no-store",
  "x-frame-options": "DENY",
  "x-robots-tag": "noindex",
  "referrer-policy": "no-referrer",
}

/** Beside that no script runs, nothing is loaded but images from the places given, and forms lead nowhere else. */
export const pageHeaders = (style: string, images = "data:", form_targets = "'self'") => ({
  ...unkept,
  "content-security-policy": [
    "default-src 'none'",
    `style-src 'sha256-${new Bun.CryptoHasher("sha256").update(style).digest("base64")}'`,
    `img-src ${images}`,
    "base-uri 'none'",
    `form-action ${form_targets}`,
    "frame-ancestors 'none'",
  ].join("; "),
  "x-content-type-options": "nosniff",
})
