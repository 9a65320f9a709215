import type { ExampleRequest } from "../../http/example-request"
import { html, type Markup } from "../html"
import { commandLines } from "./command-lines"
import { codeBlock } from "./frame"
import { type ProgramExample, programExamples } from "./program-examples"

/** The request in every language. The choice is one of radio buttons, which need no script. */
export function exampleTabs(request: ExampleRequest, name: string): Markup {
  const examples = programExamples(request, commandLines[name])
  const missing = LANGUAGES.filter((one) => !examples.some(({ language }) => language === one))
  return html`${tabs(examples)}${missing.length > 0 && html`<p class="needs">${absent(missing)}</p>`}`
}

const LANGUAGES = ["Python", "Go", "PHP", "belfry"]

const absent = (missing: string[]) =>
  [
    missing.includes("Go") &&
      "The standard libraries of Python, Go and PHP have no WebSocket. Use the event feed there.",
    missing.includes("belfry") && "No command of belfry sends this request.",
  ]
    .filter(Boolean)
    .join(" ")

/** One set of tabs on a page. */
export const tabs = (examples: ProgramExample[]): Markup => html`<fieldset class="examples">
<legend>Language</legend>
<div class="languages">${examples.map(
  ({ language, name }, at) =>
    html`<input type="radio" name="language" id="language-${name}" value="${name}"${at === 0 && CHECKED}><label for="language-${name}">${language}</label>
`,
)}</div>
${examples.map(
  ({ language, name, source }) =>
    html`<div class="example ${name}">${codeBlock(source, `Example in ${language}`)}</div>
`,
)}</fieldset>`

const CHECKED = html` checked`

/** Where the script puts a form that sends the request, with what it needs to know. */
export function tryPlace(request: ExampleRequest, path: string, query: string[]): Markup {
  const { method, credential, body } = request
  const text = body !== undefined && JSON.stringify(body, null, 2)
  return html`<div data-try data-method="${method}" data-path="${path}" data-query="${query.join(" ")}" data-credential="${String(
    credential !== undefined,
  )}"${text !== false && html` data-body="${text}"`}></div>`
}
