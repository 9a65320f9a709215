import { html, Markup } from "./html"
import { smallStyle } from "./small-style"

const STYLE = new Markup(smallStyle)

const digest = new Bun.CryptoHasher("sha256").update(smallStyle).digest("base64")

/** No script runs, nothing is loaded, nobody frames it, and the address in it goes nowhere. */
const HEADERS = {
  "content-type": "text/html;charset=utf-8",
  "content-security-policy": [
    "default-src 'none'",
    `style-src 'sha256-${digest}'`,
    "img-src data:",
    "base-uri 'none'",
    "form-action 'self'",
    "frame-ancestors 'none'",
  ].join("; "),
  "cache-control": "no-store",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "x-robots-tag": "noindex",
}

const PRODUCT = "Belfry"

/** One thing to read and perhaps one form to fill in. */
export function smallPage(title: string, content: Markup, status = 200): Response {
  const page = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title === PRODUCT ? title : `${title} · ${PRODUCT}`}</title>
<link rel="icon" href="data:,">
<style>${STYLE}</style>
</head>
<body>
<main>
<h1>${title}</h1>
${content}
</main>
</body>
</html>
`
  return new Response(page.text, { status, headers: HEADERS })
}

/** What went wrong with the form, to be shown above it. */
export const complaint = (text: string | undefined): Markup | undefined =>
  text === undefined ? undefined : html`<p class="complaint" role="alert">${text}</p>`

interface Field {
  name: string
  label: string
  type?: "text" | "email" | "password"
  /** As browsers and password managers know it. */
  autocomplete: string
  value?: string
  hint?: string
  optional?: boolean
}

export function field({ name, label, type = "text", ...rest }: Field): Markup {
  const { autocomplete, value = "", hint, optional = false } = rest
  return html`
<label for="${name}">${label}</label>
<input id="${name}" name="${name}" type="${type}" autocomplete="${autocomplete}" value="${value}" maxlength="1000"${optional ? undefined : new Markup(" required")}>
${hint && html`<p class="hint">${hint}</p>`}`
}

export const PASSWORD_RULES =
  "Use at least 8 characters, with an upper-case letter, a lower-case letter, a digit and a symbol."

/** For a person with a user: the password, and the code if a second factor is on. */
export const proofFields = (): Markup =>
  html`${field({
    name: "password",
    label: "Password",
    type: "password",
    autocomplete: "current-password",
  })}${field({
    name: "code",
    label: "Code of your authenticator app, or a backup code",
    autocomplete: "one-time-code",
    hint: "Only needed if a second factor is on.",
    optional: true,
  })}`
