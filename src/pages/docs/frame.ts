import { html, type Markup, wholePage } from "../html"
import type { Guide } from "./guides"
import type { DocArea } from "./reference"

/** What every page of the reference has around it. */
interface DocsSurroundings {
  version: string
  areas: DocArea[]
  guides: Guide[]
  /** The names of the script and the style sheets under `/assets`. */
  assets: { theme: string; script: string; style: string }
}

interface DocsPageParts {
  title: string
  content: Markup
  /** The path of this page, to mark its link. */
  path: string
  /** The area whose operations stand in the contents. */
  area?: string | undefined
  query?: string
}

export function docsFrame(around: DocsSurroundings, parts: DocsPageParts): string {
  const { assets } = around
  const next = parts.query ? `${parts.path}?q=${encodeURIComponent(parts.query)}` : parts.path
  const title = parts.title === HOME_TITLE ? HOME_TITLE : `${parts.title} · Belfry`
  return wholePage({
    title,
    head: html`<meta name="color-scheme" content="light dark">
<script src="/assets/${assets.theme}"></script>
<link rel="stylesheet" href="/assets/${assets.style}">
<script type="module" src="/assets/${assets.script}"></script>`,
    body: html`<a class="skip" href="#content">Skip to the content</a>
<header class="bar">
<a class="brand" href="/">Belfry</a>
<nav aria-label="Pages">
<a href="/">Start</a>
<a href="/mailbox">Mailbox</a>
<a href="/docs" aria-current="${parts.path === "/docs" ? "page" : "true"}">Reference</a>
</nav>
<a class="to-contents" href="#contents">Contents</a>
<form class="field" role="search" action="/docs/search" method="get">
<input type="search" name="q" aria-label="Search the reference" placeholder="Search" autocomplete="off" maxlength="100" value="${parts.query ?? ""}">
</form>
<a class="button enter" href="/sign-in?next=${encodeURIComponent(next)}">Sign in</a>
</header>
<div class="columns">
<main id="content" tabindex="-1">
${parts.content}
</main>
${contents(around, parts)}
</div>`,
  })
}

export const HOME_TITLE = "Belfry: API reference"

/** Behind the content, so that a phone shows what was asked for first. */
const contents = ({ areas, guides, version }: DocsSurroundings, { path, area }: DocsPageParts) =>
  html`<nav class="contents" id="contents" aria-label="Contents">
<h2>Start</h2>
<ul>${STARTS.map(([to, name]) => item(to, name, path))}</ul>
<details${isOpen(path, !path.startsWith("/docs/guides/"))}><summary>API</summary>
<ul>${areas.map(
    ({ name, title, operations }) => html`
<li><a href="/docs/${name}"${current(`/docs/${name}`, path)}>${title}</a>${
      name === area &&
      html`<ul class="operations">${operations.map(({ method, operation }) => {
        const to = `/docs/${operation.operationId}`
        return html`
<li><a href="${to}"${current(to, path)}>${methodMark(method)} <span>${operation.summary}</span></a></li>`
      })}</ul>`
    }</li>`,
  )}</ul></details>
<details${isOpen(path, path.startsWith("/docs/guides/"))}><summary>Guides</summary>
<ul>${guides.map(({ name, short }) => item(`/docs/guides/${name}`, short, path))}</ul></details>
<p class="version">Belfry ${version}</p>
</nav>`

const isOpen = (path: string, is_here: boolean) => (path === "/docs" || is_here) && OPEN
const OPEN = html` open`

const STARTS = [
  ["/docs#first", "The first email"],
  ["/docs#credentials", "Authentication"],
  ["/docs#answers", "Answers and lists"],
  ["/docs#repeat", "Repeating safely"],
  ["/docs/errors", "Errors"],
  ["/docs/event-types", "Event types"],
] as const

const item = (to: string, name: string, path: string) => html`
<li><a href="${to}"${current(to, path)}>${name}</a></li>`

const current = (to: string, path: string) => to === path && CURRENT
const CURRENT = html` aria-current="page"`

/** The method of a request, in its color. */
export const methodMark = (method: string): Markup =>
  html`<span class="method ${method.toLowerCase()}">${method}</span>`

/** Code that can be copied: the script adds the button. It scrolls by keyboard, too. */
export const codeBlock = (source: string, label: string): Markup =>
  html`<pre tabindex="0" aria-label="${label}"><code>${source}</code></pre>`

/** A narrow column breaks a path before its slashes. */
export const breakable = (path: string): Markup[] =>
  path.split(/(?=\/)/).map((part) => html`<wbr>${part}`)
