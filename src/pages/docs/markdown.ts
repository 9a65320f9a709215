import { html, Markup } from "../html"
import { lookupGuide } from "./guides"

/** A section of a page: its heading with the text below it. */
interface GuideSection {
  /** As the heading stands in an address. */
  id: string
  heading: string
  text: string
}

/**
 * Markdown as HTML. The parser is that of the runtime. Tags in the text are shown and not obeyed, and
 * links go to guides of this server or to the web.
 */
export function renderMarkdown(text: string): Markup {
  let tables = 0
  // The parser makes four spaces of a tab, which a program may need.
  const out = Bun.markdown.html(withoutComments(text).replaceAll("\t", TAB), {
    noHtmlBlocks: true,
    noHtmlSpans: true,
    tagFilter: true,
    headings: { ids: true },
  })
  const rendered = out
    .replaceAll(TAB, "\t")
    .replaceAll(/<a href="([^"]*)"[^>]*>/g, (_, to: string) => linkTo(to))
    .replaceAll(/<img [^>]*>/g, "")
    .replaceAll("<pre>", '<pre tabindex="0" aria-label="Example">')
    .replaceAll(
      "<table>",
      () => `<div class="wide" role="region" aria-label="Table ${++tables}" tabindex="0"><table>`,
    )
    .replaceAll("</table>", "</table></div>")
    .replaceAll("<th></th>", "<td></td>") // the corner of a table names nothing
  return new Markup(rendered)
}

/** Of the private use area: it stands in no text. */
const TAB = "\ue000"

/** Notes for the generator of a page are nothing for readers. */
const withoutComments = (text: string) => text.replaceAll(/^<!--.*?-->\n/gm, "")

/** Addresses in the text are escaped already. */
function linkTo(to: string): string {
  if (to.startsWith("#")) return `<a href="${to}">`
  if (/^https:\/\//.test(to)) return `<a href="${to}" rel="noreferrer">`
  const [, name = "", heading = ""] = /^(?:docs\/)?([\w-]+)\.md(#[\w-]+)?$/.exec(to) ?? []
  return lookupGuide(name) ? `<a href="/docs/guides/${name}${heading}">` : "<a>"
}

/** The title and the sections of a page. The text before the first heading is a section, too. */
export function sectionsOf(text: string): { title: string; sections: GuideSection[] } {
  const [first = "", ...rest] = withoutFences(withoutComments(text)).split(/^(?=#{2,3} )/m)
  const [, title = "", opening = ""] = /^# (.*)\n([\s\S]*)$/.exec(first) ?? []
  const sections = rest.map((part) => {
    const [, heading = "", body = ""] = /^#+ (.*)\n?([\s\S]*)$/.exec(part) ?? []
    return { id: idOf(heading), heading: heading.replaceAll("`", ""), text: body }
  })
  return {
    title: title.replaceAll("`", ""),
    sections: [{ id: "", heading: "", text: opening }, ...sections],
  }
}

/** A comment of a shell looks like a heading. */
const withoutFences = (text: string) =>
  text.replaceAll(/^```[\s\S]*?^```$/gm, (block) => block.replaceAll(/^#/gm, " #"))

/** As the parser of the runtime names a heading, so that links meet. */
function idOf(heading: string): string {
  const out = Bun.markdown.html(`# ${heading}\n`, { headings: { ids: true } })
  return /id="([^"]*)"/.exec(out)?.[1] ?? ""
}

/** A guide with the contents of its sections. */
export function guideContent(text: string): Markup {
  const { sections } = sectionsOf(text)
  const named = sections.filter(({ id }) => id !== "")
  const whole = renderMarkdown(text)
  const at = whole.text.indexOf("</h1>") + "</h1>".length
  if (named.length < FEW_SECTIONS) return html`<div class="guide">${whole}</div>`
  return html`<div class="guide">${new Markup(whole.text.slice(0, at))}
<details class="sections"><summary>On this page</summary><ul>${named.map(
    ({ id, heading }) => html`
<li><a href="#${id}">${heading}</a></li>`,
  )}</ul></details>
${new Markup(whole.text.slice(at))}</div>`
}

const FEW_SECTIONS = 3
