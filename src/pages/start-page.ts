import { VERSION } from "../core/version"
import { html } from "./html"
import { smallPage } from "./small-page"

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
