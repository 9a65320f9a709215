import page from "../../docs/webhooks.md" with { type: "text" }
import { html, type Markup, prose } from "./html"

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
