import { consoleAssets } from "./assets"
import { html, type Markup, wholePage } from "./html"

export interface ShellFacts {
  /** `up`: a laptop's own server, with an embedded mailbox and one project. */
  mode: "up" | "serve"
  /** The source of the page at this address, without its ending: its scripts load at once. */
  page: string
  /** What stands there until the console runs, and for browsers without script. */
  content: Markup
}

/**
 * The page that starts the console, for every address of the console. It has neither a script nor a
 * style of its own: both come from `/assets`, and the policy allows nothing else.
 */
export async function consolePage(request: Request, facts: ShellFacts): Promise<Response> {
  const { entries, pages } = await consoleAssets()
  const early = (pages[facts.page] ?? []).filter((name) => name !== entries.main)
  const page = wholePage({
    title: "Belfry",
    head: html`<meta name="color-scheme" content="light dark">
<meta name="belfry-mode" content="${facts.mode}">
<script src="/assets/${entries.theme}"></script>
<link rel="stylesheet" href="/assets/${entries.style}">
<script type="module" src="/assets/${entries.main}"></script>
${early.map((name) => html`<link rel="modulepreload" href="/assets/${name}">\n`)}`,
    body: html`<div id="console">${facts.content}</div>`,
  })
  const etag = `"${new Bun.CryptoHasher("sha256").update(page).digest("base64url").slice(0, 22)}"`
  const headers = { ...consoleHeaders(request), etag, "cache-control": "no-cache" }
  if (request.headers.get("if-none-match")?.includes(etag))
    return new Response(null, { status: 304, headers })
  return new Response(page, { headers })
}

/**
 * Nothing comes from elsewhere, nothing inline runs, no string becomes a script (Trusted Types), no page
 * frames this one, and no other site learns its address.
 */
export const consoleHeaders = (request: Request): Record<string, string> => ({
  "content-type": "text/html;charset=utf-8",
  "content-security-policy": [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data: blob:",
    `connect-src 'self'${socketSources(request)}`,
    "frame-src 'self'",
    "font-src 'self'",
    "base-uri 'none'",
    "form-action 'self'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join("; "),
  "cross-origin-opener-policy": "same-origin",
  "permissions-policy": "camera=(), geolocation=(), microphone=()",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "x-robots-tag": "noindex",
})

/** Not every browser counts its own WebSocket as `'self'`. */
function socketSources({ url }: Request): string {
  const { host } = new URL(url)
  return /^([\w.-]+|\[[\da-f:]+\])(:\d+)?$/.test(host) ? ` ws://${host} wss://${host}` : ""
}
