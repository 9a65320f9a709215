import { codes } from "../core/errors"
import { html } from "./html"

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
<p>The url and the key are printed by <code>belfry up</code>. Mail to any address at
<code>mailbox.test</code> goes to the embedded mailbox.</p>
<pre><code>${CURL}</code></pre>
<p>201 means that the email is on disk and will be delivered:</p>
<pre><code>${REPLY}</code></pre>
<p>See what became of it with <code>GET /v1/emails/{email_id}/events</code>, and read it with
<code>GET /v1/mailbox</code>.</p>

<h2 id="credentials">Authentication</h2>
<p>Send the API key as <code>X-API-Key: svc_live_…</code> or as
<code>Authorization: Bearer svc_live_…</code>. A key belongs to one project and has scopes; a route
says which one it needs. A missing, wrong, revoked or expired key is 401
<code>unauthorized</code>; a missing scope is 403 <code>forbidden</code>, with
<code>details.required_scope</code>.</p>
<p>People send their access token as <code>Authorization: Bearer</code>. Somebody with several
accounts or projects names one with <code>X-Account-Id</code> or <code>X-Project-Id</code>.</p>
<p>Every answer under <code>/v1</code> tells in <code>X-RateLimit-Limit</code>,
<code>-Remaining</code> and <code>-Reset</code> how many requests are left in this minute. After
that it is 429 with <code>Retry-After</code>.</p>

<h2 id="answers">Answers and lists</h2>
<p>A success is <code>{"data": …, "meta": {"request_id": …}}</code>. The request id is also in the
header <code>X-Request-Id</code>, and in our log. Times are ISO 8601 in UTC; fields without a value
are <code>null</code>, never absent. Unknown fields of a request are ignored, or refused with
<code>X-Strict: 1</code>.</p>
<p>Lists have the newest first, 25 a page: <code>page</code> and <code>per_page</code> (at most 100)
move through them, and <code>cursor=</code> with <code>meta.next_cursor</code> goes on without an
end. <code>limit</code> is another name of <code>per_page</code>. <code>after=</code> with an id
begins after that record, and <code>before=</code> ends before it.</p>

<h2 id="repeat">Repeating safely</h2>
<p>With <code>Idempotency-Key</code> a request is executed once in 24 hours: the same key with the
same body gets the first answer again, with <code>Idempotent-Replayed: true</code>. The same key
with another body is 422, and while the first one runs 409.</p>

<h2 id="errors">Errors</h2>
<p>A failure is <code>{"error": {"code", "message", "details"}, "meta": {"request_id"}}</code>.
Branch on the status and the code, never on the message. 429, 500, 502, 503 and 504 are worth
another try, with growing pauses; everything else is final.</p>
<div class="fields codes" role="table">${[...byStatus]
  .sort(([a], [b]) => a - b)
  .map(
    ([status, list]) => html`
<div role="row"><span role="cell"><b>${status}</b></span><span role="cell">${list.map(
      ({ name }, at) => html`${at > 0 && ", "}<code>${name}</code>`,
    )}</span></div>`,
  )}
</div>`
