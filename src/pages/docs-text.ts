import page from "../../docs/webhooks.md" with { type: "text" }
import { codes } from "../core/errors"
import { html, type Markup, prose } from "./html"

const CURL = `export BELFRY_URL=http://127.0.0.1:8080
export BELFRY_API_KEY=svc_live_…

curl -sS "$BELFRY_URL/v1/emails" \\
  -H "X-API-Key: $BELFRY_API_KEY" \\
  -H "Content-Type: application/json" \\
  -d '{"from": "hello@mailbox.test", "to": "you@mailbox.test",
       "subject": "It works", "text": "Hello from Belfry."}'`

const REPLY = `{"id": "019…",
 "data": {"id": "019…", "status": "queued", …},
 "meta": {"request_id": "req_…"}}`

const byStatus = Map.groupBy(
  Object.entries(codes).map(([name, { status }]) => ({ name, status })),
  ({ status }) => status,
)

/** What a reader needs before the first operation. */
export const opening = html`
<h2 id="first">The first email</h2>
<p><code>belfry up</code> prints the URL and the key. Mail to any address at
<code>mailbox.test</code> goes to the embedded mailbox.</p>
<pre><code>${CURL}</code></pre>
<p>201 means that Belfry has stored the email and will deliver it:</p>
<pre><code>${REPLY}</code></pre>
<p>See the events of the email with <code>GET /v1/emails/{email_id}/events</code>. Read it in the
embedded mailbox with <code>GET /v1/mailbox</code>.</p>

<h2 id="credentials">Authentication</h2>
<p>Send the API key as <code>X-API-Key: svc_live_…</code> or as
<code>Authorization: Bearer svc_live_…</code>. A key belongs to one project and has scopes. Each
route names the scope that it needs. A missing, wrong, revoked or expired key gets 401
<code>unauthorized</code>. A missing scope gets 403 <code>forbidden</code>, with
<code>details.required_scope</code>.</p>
<p>People send their access token as <code>Authorization: Bearer</code>. People with several
accounts or projects name one with <code>X-Account-Id</code> or <code>X-Project-Id</code>.</p>
<p>Every answer under <code>/v1</code> has the headers <code>X-RateLimit-Limit</code>,
<code>-Remaining</code> and <code>-Reset</code>. They tell how many requests are left in this
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
<code>meta.docs</code> is the path of a page about the code. Branch on the status and the code, never on the message. Repeat a request after 429, 500,
502, 503 and 504, with growing pauses. Every other error is final.</p>
<div class="fields codes" role="table">${[...byStatus]
  .sort(([a], [b]) => a - b)
  .map(
    ([status, list]) => html`
<div role="row"><span role="cell"><b>${status}</b></span><span role="cell">${list.map(
      ({ name }, at) =>
        html`${at > 0 && ", "}<a href="/docs/errors/${name}"><code>${name}</code></a>`,
    )}</span></div>`,
  )}
</div>`

const HEADING = "## Check the signature yourself\n"

/** How a receiver checks a delivery: the section of docs/webhooks.md, so that both say the same. */
export const signatures = (): Markup => html`
<h2 id="signatures">Webhook signatures</h2>
${sectionOf(page)
  .split(/(```[\s\S]*?\n```)/)
  .flatMap((part) =>
    part.startsWith("```") ? codeBlock(part) : part.split(/\n\s*\n/).map(block),
  )}`

function sectionOf(text: string): string {
  const rest = text.slice(text.indexOf(HEADING) + HEADING.length)
  return rest.slice(0, rest.indexOf("\n## "))
}

const codeBlock = (fenced: string) =>
  html`<pre><code>${fenced.replace(/^```\w*\n/, "").replace(/\n```$/, "")}</code></pre>`

function block(text: string): Markup | undefined {
  const trimmed = text.trim()
  if (trimmed === "") return undefined
  if (!trimmed.startsWith("|")) return html`<p>${prose(trimmed)}</p>`
  const rows = trimmed.split("\n").map((row) => row.slice(1, -1).split("|"))
  const [head = [], , ...body] = rows
  return html`<div class="wide"><table><tr>${head.map((cell) => html`<th>${prose(cell.trim())}</th>`)}</tr>${body.map(
    (row) => html`<tr>${row.map((cell) => html`<td>${prose(cell.trim())}</td>`)}</tr>`,
  )}</table></div>`
}
