import type { ExampleRequest } from "../../http/example-request"
import { html, type Markup, prose } from "../html"
import { breakable, codeBlock, methodMark } from "./frame"
import type { Guide } from "./guides"
import { programExamples, tabs, tryPlace } from "./program-examples"
import type { ApiReference, DocArea } from "./reference"

const SETUP = `export BELFRY_URL=http://127.0.0.1:8080
export BELFRY_API_KEY=svc_live_…`

/** The request of the first email: under `belfry up` it needs nothing else. */
export const FIRST_EMAIL: ExampleRequest = {
  method: "POST",
  path: "/v1/emails",
  credential: { header: "X-API-Key", prefix: "", variable: "BELFRY_API_KEY" },
  produces: "application/json",
  body: {
    from: "hello@mailbox.test",
    to: "you@mailbox.test",
    subject: "It works",
    text: "Hello from Belfry.",
  },
}

/** The command that sends the same email. */
export const FIRST_COMMAND = `belfry emails send --from hello@mailbox.test --to you@mailbox.test \\
  --subject "It works" --text "Hello from Belfry."`

const REPLY = `{
  "id": "019…",
  "data": { "id": "019…", "status": "queued", … },
  "meta": { "request_id": "req_…" }
}`

/** What a reader needs before the first operation, and the ways to all others. */
export const homePage = (reference: ApiReference, guides: Guide[]): Markup => html`
<h1>Belfry API <small>${reference.version}</small></h1>
<h2 id="first">The first email</h2>
<p><code>belfry up</code> prints the URL and the key. Programs and <code>belfry</code> read both from the environment:</p>
${codeBlock(SETUP, "Environment")}
<p>The embedded mailbox catches mail to any address at <code>mailbox.test</code>.</p>
${tabs(programExamples(FIRST_EMAIL, FIRST_COMMAND))}
${tryPlace(FIRST_EMAIL, FIRST_EMAIL.path, [])}
<p>201 means that Belfry has stored the email and will deliver it:</p>
${codeBlock(REPLY, "Response")}
<p>See <a href="/docs/getEmailsByEmailIdEvents">the events of the email</a>. Read it in the
<a href="/mailbox">embedded mailbox</a>, or with <code>belfry mailbox list</code>.</p>

<h2 id="credentials">Authentication</h2>
<p>Send the API key as <code>X-API-Key: svc_live_…</code> or as
<code>Authorization: Bearer svc_live_…</code>. A key belongs to one project and has scopes. Each
operation names the scope that it needs. A missing, wrong, revoked or expired key gets 401
<a href="/docs/errors/unauthorized"><code>unauthorized</code></a>. A missing scope gets 403
<a href="/docs/errors/forbidden"><code>forbidden</code></a>, with <code>details.required_scope</code>.</p>
<p>People send their access token as <code>Authorization: Bearer</code>. People with several
accounts or projects name one with <code>X-Account-Id</code> or <code>X-Project-Id</code>.</p>
<p>Every answer under <code>/v1</code> has the headers <code>X-RateLimit-Limit</code>,
<code>-Remaining</code> and <code>-Reset</code>. They say how many requests are left in this
minute. Requests above the limit get 429 with <code>Retry-After</code>.</p>

<h2 id="answers">Answers and lists</h2>
<p>A success is <code>{"data": …, "meta": {"request_id": …}}</code>. The request id is also in the
header <code>X-Request-Id</code> and in the log of the server. Times are ISO 8601 in UTC. Fields
without a value are <code>null</code>, never absent. Unknown fields of a request are ignored. With
<code>X-Strict: 1</code> they are refused.</p>
<p>Lists show the newest record first, 25 on a page. Choose a page with <code>page</code> and
<code>per_page</code> (at most 100). To read a long list, send <code>meta.next_cursor</code> of each
page as <code>cursor</code> of the next request. <code>limit</code> is another name of
<code>per_page</code>. <code>after</code> with an id begins after that record, and
<code>before</code> ends before it.</p>

<h2 id="repeat">Repeating safely</h2>
<p>With <code>Idempotency-Key</code> a request is executed once in 24 hours. The same key with the
same body gets the first answer again, with <code>Idempotent-Replayed: true</code>. The same key
with another body gets 422. While the first request runs, the same key gets 409.</p>

<h2 id="errors">Errors</h2>
<p>A failure is <code>{"error": {"code", "message", "details"}, "meta": {"request_id", "docs"}}</code>.
<code>meta.docs</code> is the path of a page about the code. Branch on the status and the code, never on the
message. Repeat a request after 429, 500, 502, 503 and 504, with growing pauses. Every other error is final.
<a href="/docs/errors">All codes</a> have their causes and remedies.</p>

<h2 id="signatures">Webhook signatures</h2>
<p><a href="/docs/event-types">Event types</a> has the fields of each event.
<a href="/docs/guides/webhooks#check-the-signature-yourself">The guide to webhooks</a> has a program that checks a
signature, in five languages.</p>

<h2 id="guides">Guides</h2>
<ul class="cards">${guides.map(
  ({ name, short }) => html`
<li><a href="/docs/guides/${name}">${short}</a></li>`,
)}
</ul>

<h2 id="operations">Operations</h2>
<p>The same reference for programs is <a href="/v1/openapi.json">an OpenAPI document</a>.</p>
${reference.areas.map(
  (area) => html`
<h3 id="${area.name}"><a href="/docs/${area.name}">${area.title}</a></h3>
${operationList(area, true)}`,
)}`

export const areaPage = (
  area: DocArea,
): Markup => html`<p class="trail"><a href="/docs">Reference</a></p>
<h1>${area.title}</h1>
<p>${prose(area.about)}</p>
${operationList(area, false)}`

/** With ids, an old address such as `/docs#getEmails` still leads to its operation. */
const operationList = ({ operations }: DocArea, withIds: boolean) =>
  html`<ul class="list">${operations.map(
    ({ method, path, operation }) => html`
<li${withIds && html` id="${operation.operationId}"`}><a href="/docs/${operation.operationId}">${operation.summary}</a>
<span class="route">${methodMark(method)} <code>${breakable(path)}</code></span></li>`,
  )}
</ul>`
