import { meaningOf } from "../../core/errors"
import { type SearchEntry, searchReference, wordsOf } from "../../lib/reference-search"
import { html, type Markup } from "../html"
import { commandLines } from "./command-lines"
import { errorText } from "./error-pages"
import { eventTypesOf } from "./event-types-page"
import { guides } from "./guides"
import { sectionsOf } from "./markdown"
import { type ApiReference, bodyOf, codesOf, fieldsOf, ownParameters } from "./reference"

/** Everything that a search can find: operations, sections of the guides, codes, events. */
export async function searchEntries(reference: ApiReference): Promise<SearchEntry[]> {
  const told = sectionsOf(await errorText()).sections
  const errors = [...codesOf(reference)]
  const sections = await Promise.all(guides.map(guideEntries))
  return [
    ...operationEntries(reference),
    ...errors.map((code): SearchEntry => {
      const causes = told.find(({ heading }) => heading === code)?.text ?? ""
      const words = wordsOf(`${meaningOf(code)} ${causes}`).join(" ")
      return { title: code, to: `/docs/errors/${code}`, kind: "error", words }
    }),
    ...eventTypesOf(reference).map(({ type, about, schema }): SearchEntry => {
      const fields = fieldsOf(schema).map((field) => field.path)
      const words = wordsOf(`${about} ${fields.join(" ")}`).join(" ")
      return { title: type, to: `/docs/event-types#${type}`, kind: "event", words }
    }),
    ...sections.flat(),
  ]
}

function operationEntries(reference: ApiReference): SearchEntry[] {
  return [...reference.operations.values()].map((one): SearchEntry => {
    const { method, path, operation } = one
    const body = bodyOf(one, reference.description)
    const fields = [
      ...(body ? fieldsOf(body) : []).map((field) => field.path),
      ...ownParameters(one, reference.description).map(({ name }) => name),
    ]
    const name = `${method} ${path}`
    const text = [
      path.replaceAll(/[/{}]+/g, " "),
      operation.description,
      commandLines[name],
      ...fields,
    ]
    return {
      title: operation.summary,
      to: `/docs/${operation.operationId}`,
      kind: "operation",
      words: `${name.toLowerCase()} ${wordsOf(text.join(" ")).join(" ")}`,
    }
  })
}

async function guideEntries({ name, file }: (typeof guides)[number]): Promise<SearchEntry[]> {
  const { title, sections } = sectionsOf(await Bun.file(file).text())
  return sections.map(({ id, heading, text }) => ({
    title: heading === "" ? title : `${title}: ${heading}`,
    to: `/docs/guides/${name}${id && `#${id}`}`,
    kind: "guide",
    words: wordsOf(text).join(" "),
  }))
}

/** What a search found, for browsers without script. */
export function searchPage(entries: SearchEntry[], query: string): Markup {
  const found = searchReference(entries, query)
  return html`<h1>Search</h1>
${found.length === 0 ? html`<p>${query.trim() === "" ? "Write what you look for into the field above." : `Nothing was found for “${query}”.`}</p>` : list(found)}`
}

const list = (found: SearchEntry[]) => html`<ul class="list">${found.map(
  ({ title, to, kind }) => html`
<li><a href="${to}">${title}</a> <span class="kind">${kind}</span></li>`,
)}
</ul>`
