import { type ApiError, codes, fail, isErrorCode, meanings } from "../core/errors"
import { VERSION } from "../core/version"
import { html, Markup, pageHeaders } from "./html"
import { smallStyle } from "./styles"

const STYLE = new Markup(smallStyle)

const HEADERS = {
  ...pageHeaders(smallStyle, "'self'"),
  "cache-control": "no-store",
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

/** What a person sees in place of a page that cannot be shown. */
export const refusalPage = ({ message, status }: ApiError): Response =>
  smallPage("That did not work", html`<p>${message}</p>`, status)

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

/** The page of an error's code, which `meta.docs` of the error names. */
export function errorPage(code: string): Response {
  if (!isErrorCode(code)) return fail("not_found", `There is no error code ${code}.`)
  const { status, ...more } = codes[code]
  const statuses = [status, ...("elsewhere" in more ? more.elsewhere : [])]
  return smallPage(
    code,
    html`
<p>${meanings[code]}</p>
<dl>
<dt>Status</dt>
<dd>${statuses.join(" or ")}</dd>
<dt>What to do</dt>
<dd>${isWorthARetry(status) ? RETRY : FINAL}</dd>
<dt>More</dt>
<dd><code>error.message</code> and <code>error.details</code> say what is wrong with this request.
The <a href="/docs">API reference</a> lists the errors of each request.</dd>
</dl>`,
  )
}

const isWorthARetry = (status: number) => status === 429 || status >= 500

const RETRY =
  "Send the request again later. Wait for the seconds of the header Retry-After, if there is one. Wait longer each time."
const FINAL = "Do not send the same request again. Mend its cause first."

/** `GET /`: what answers at this address, and where to go from here. */
export const startPage = (): Response =>
  smallPage(
    "Belfry",
    html`
<p>This server is Belfry ${VERSION}. It sends email for programs and reports the result of each email.</p>
<dl>
<dt><a href="/docs">API reference</a></dt>
<dd>All requests and answers, with a first email to copy.</dd>
<dt><a href="/v1/openapi.json">OpenAPI description</a></dt>
<dd>The same reference, for programs and code generators.</dd>
<dt><a href="/device">Connect a program</a></dt>
<dd><code>belfry login</code> shows a code. Enter the code there.</dd>
<dt><a href="/readyz">Health</a></dt>
<dd>Whether this server can accept mail now.</dd>
</dl>
<p class="hint">On the command line, <code>belfry --help</code> lists all commands.
<code>belfry tui</code> shows live what happens on this server.</p>`,
  )
