import { codes, fail, isErrorCode, meanings } from "../core/errors"
import { html } from "./html"
import { smallPage } from "./small-page"

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
