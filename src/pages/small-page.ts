import { ApiError, type ErrorCode } from "../core/errors"
import { VERSION } from "../core/version"
import { isolated } from "../lib/text"
import { html, Markup, pageHeaders, wholePage } from "./html"
import { smallStyle } from "./styles"

const STYLE = new Markup(smallStyle)

const HEADERS = pageHeaders(smallStyle)

/** One thing to read and perhaps one form to fill in. */
export function smallPage(title: string, content: Markup, status = 200): Response {
  const page = wholePage({
    title: `${isolated(title)} · Belfry`,
    head: html`<style>${STYLE}</style>`,
    body: html`<header class="bar"><p>Belfry</p></header>
<main>
<h1>${title}</h1>
${content}
</main>`,
  })
  return new Response(page, { status, headers: HEADERS })
}

interface FormPage {
  title: string
  about: Markup
  /** What went wrong with the last try. */
  problem: ApiError | undefined
  /** Default: the address of the page. */
  action?: string
  /** What the form carries along unseen. */
  unseen?: Markup
  fields: readonly Field[]
  go: string
}

/** Something to read, and one form to fill in. */
export const formPage = ({ title, about, problem, fields, go, ...form }: FormPage): Response =>
  smallPage(
    title,
    html`
<p>${about}</p>
${problem && html`<p class="complaint" role="alert">${problem.message}</p>`}
<form method="post"${form.action && html` action="${form.action}"`}>
${form.unseen}
${fields.map(fieldMarkup)}
<button class="go">${go}</button>
</form>`,
    problem?.status,
  )

/** What `work` answers, or the form with what was wrong. A problem with this code has no form to mend it. */
export async function orForm(
  work: () => Promise<Response>,
  form: (problem: ApiError) => Response,
  unmendable?: ErrorCode,
): Promise<Response> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof ApiError && error.code !== unmendable) return form(error)
    throw error
  }
}

/** A time as people write it: these pages know no time zone but UTC. */
export const timeText = (iso: string): Markup =>
  html`<time datetime="${iso}">${formatOfTimes().format(new Date(iso)).replace(" at ", ", ")} UTC</time>`

let known_format: Intl.DateTimeFormat | undefined

/** Made with the first page that needs it: the tables of languages take 4 MB of memory. */
function formatOfTimes(): Intl.DateTimeFormat {
  known_format ??= new Intl.DateTimeFormat("en-GB", {
    ...{ day: "numeric", month: "long", year: "numeric", hour: "2-digit", minute: "2-digit" },
    timeZone: "UTC",
  })
  return known_format
}

/** What a person sees in place of a page that cannot be shown. */
export const refusalPage = ({ message, status }: ApiError): Response =>
  smallPage("That did not work", html`<p>${message}</p>`, status)

/** The same for an address that is no page, with ways to go on. */
export const absentPage = ({ message, status }: ApiError): Response =>
  smallPage(
    "That did not work",
    html`<p>${message}</p>
<p><a href="/docs">Open the reference</a> or <a href="/">go to the start page</a>.</p>`,
    status,
  )

interface Field {
  name: string
  label: string
  type?: "text" | "email" | "password"
  /** As browsers and password managers know it. */
  autocomplete: string
  value?: string
  hint?: string
  optional?: boolean
  /** Shown in capital letters of one width: a code to compare with another screen. */
  is_code?: boolean
}

/** A labelled field of a form. */
export function fieldMarkup({ name, label, type = "text", ...rest }: Field): Markup {
  const { autocomplete, value = "", hint, optional = false, is_code = false } = rest
  const more = [
    ...(hint ? [`aria-describedby="${name}-hint"`] : []),
    ...(is_code ? ['class="code" autocapitalize="characters" spellcheck="false"'] : []),
    ...(optional ? [] : ["required"]),
  ]
  return html`
<label for="${name}">${label}</label>
<input id="${name}" name="${name}" type="${type}" autocomplete="${autocomplete}" value="${value}" maxlength="1000" ${new Markup(more.join(" "))}>
${hint && html`<p class="hint" id="${name}-hint">${hint}</p>`}`
}

export const newPassword = (name: string, label: string): Field => ({
  name,
  label,
  type: "password",
  autocomplete: "new-password",
  hint: "Use at least 8 characters, with an upper-case letter, a lower-case letter, a digit and a symbol.",
})

/** For a person with a user: the password, and the code if a second factor is on. */
export const PROOF: readonly Field[] = [
  { name: "password", label: "Password", type: "password", autocomplete: "current-password" },
  {
    name: "code",
    label: "Code of the second factor",
    autocomplete: "one-time-code",
    hint: "From your authenticator app, or a backup code. Leave it empty if no second factor is on.",
    optional: true,
  },
]

/** Of `GET /`: what answers at this address, and where to go from here. Readable without script. */
export const startContent = (): Markup => html`<main class="narrow">
<h1>Belfry</h1>
<p>This server is Belfry ${VERSION}. It sends emails and texts for programs, and reports the result of each.</p>
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
<code>belfry tui</code> shows live what happens on this server.</p>
</main>`
