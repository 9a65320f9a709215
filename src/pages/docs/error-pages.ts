import file from "../../../docs/errors.md" with { type: "file" }
import { codes, type ErrorCode, isErrorCode, meanings } from "../../core/errors"
import { pageOf } from "../../http/envelope"
import { html, type Markup } from "../html"
import { exampleDetails } from "./error-details"
import { codeBlock } from "./frame"
import { renderMarkdown, sectionsOf } from "./markdown"
import { type ApiReference, failuresOf } from "./reference"

/** The text of `docs/errors.md`: the causes of each code, and what to do. */
export const errorText = (): Promise<string> => Bun.file(file).text()

/** The page of an error's code, which `meta.docs` of the error names. Undefined for other names. */
export function errorContent(
  code: string,
  text: string,
  reference: ApiReference,
): Markup | undefined {
  if (!isErrorCode(code)) return undefined
  const told = sectionsOf(text).sections.find(({ heading }) => heading === code)
  const [causes = "", remedy = ""] = (told?.text ?? "").split(/\*\*What to do:\*\*/)
  const status = statusesOf(code)
  return html`<p class="trail"><a href="/docs">Reference</a> / <a href="/docs/errors">Errors</a></p>
<h1><code>${code}</code></h1>
<p>${meanings[code]}</p>
<dl class="facts">
<dt>Status</dt>
<dd>${status.join(" or ")}</dd>
<dt>Try again?</dt>
<dd>${status.every(isWorthARetry) ? RETRY : FINAL}</dd>
</dl>
<h2 id="causes">Causes</h2>
${renderMarkdown(causes)}
<h2 id="remedy">What to do</h2>
${renderMarkdown(remedy)}
<h2 id="example">Response</h2>
${codeBlock(JSON.stringify(exampleOf(code), null, 2), "Response")}
${operationsPart(code, reference)}`
}

function statusesOf(code: ErrorCode): number[] {
  const { status, ...more } = codes[code]
  return [status, ...("elsewhere" in more ? more.elsewhere : [])]
}

const isWorthARetry = (status: number) => status === 429 || status >= 500

const RETRY =
  "Yes, later. Wait for the seconds of the header Retry-After, if there is one. Wait longer each time."
const FINAL = "No. The same request fails again until its cause is mended."

const exampleOf = (code: ErrorCode) => ({
  error: { code, message: "A sentence for people. It may change.", details: exampleDetails(code) },
  meta: { request_id: "req_4f1d2e4c5b6a7d407c3e9b5a3f1d2e4c", docs: pageOf(code) },
})

/** Beyond these, the list would tell nothing. */
const MOST_OPERATIONS = 40

function operationsPart(code: ErrorCode, reference: ApiReference): Markup {
  const all = [...reference.operations.values()].filter((one) =>
    failuresOf(one, reference.description).some((failure) => failure.codes.includes(code)),
  )
  if (all.length === 0) return html`<p>No operation of this version answers with this code.</p>`
  if (all.length > MOST_OPERATIONS) return html`<p>Most operations may answer with this code.</p>`
  return html`<h2 id="operations">Operations with this code</h2>
<ul>${all.map(
    ({ operation }) => html`
<li><a href="/docs/${operation.operationId}">${operation.summary}</a></li>`,
  )}
</ul>`
}

/** Every code, by status. */
export const errorList = (): Markup => html`<p class="trail"><a href="/docs">Reference</a></p>
<h1>Errors</h1>
<p>A failure is <code>{"error": {"code", "message", "details"}, "meta": {"request_id", "docs"}}</code>.
Branch on the status and the code, never on the message. Repeat a request after 429, 500, 502, 503 and 504, with
growing pauses. Every other error is final.</p>
${[...byStatus()].map(
  ([status, list]) => html`
<h2 id="status-${status}">${status}</h2>
<div class="fields pairs" role="table">${list.map(
    (code) => html`
<div role="row"><span role="cell"><a href="/docs/errors/${code}"><code>${code}</code></a></span><span role="cell">${meanings[code]}</span></div>`,
  )}
</div>`,
)}`

function byStatus(): [number, ErrorCode[]][] {
  const all = Object.keys(codes).filter(isErrorCode)
  return [...Map.groupBy(all, (code) => codes[code].status)].sort(([a], [b]) => a - b)
}
