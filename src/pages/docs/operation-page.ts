import { meaningOf } from "../../core/errors"
import { commonCodes } from "../../http/openapi-components"
import type { Schema } from "../../http/openapi-schemas"
import { html, type Markup, prose } from "../html"
import { breakable, codeBlock, methodMark } from "./frame"
import { exampleTabs, tryPlace } from "./program-examples"
import {
  type ApiReference,
  answersOf,
  bodyOf,
  type DocAnswer,
  type DocFailure,
  type DocField,
  type DocOperation,
  failuresOf,
  fieldsOf,
  fieldTable,
  kindOf,
  notOfferedIn,
  ownParameters,
  parameterField,
  withoutReferences,
} from "./reference"

/** The page of one operation: what it does, takes, answers and refuses, with examples. */
export function operationPage(one: DocOperation, reference: ApiReference): Markup {
  const { method, path, operation, request } = one
  const { description, areas } = reference
  const area = areas.find(({ name }) => operation.tags.includes(name))
  return html`<p class="trail"><a href="/docs">Reference</a> / <a href="/docs/${area?.name ?? ""}">${area?.title ?? ""}</a></p>
<h1>${operation.summary}</h1>
<div class="route">${methodMark(method)} <code>${breakable(path)}</code></div>
<p>${prose(operation.description ?? "")}</p>
<p class="needs">${needsOf(one)}</p>
<section aria-labelledby="request">
<h2 id="request">Request</h2>
${exampleTabs(request, `${method} ${path}`)}
${triedPart(one, reference)}
</section>
${parameterParts(one, reference)}${bodyPart(one, reference)}
<h2 id="answer">Response</h2>
${answersOf(one).map((answer) => answerPart(answer, description))}
<h2 id="errors">Errors</h2>
${failurePart(failuresOf(one, description))}`
}

/** A connection cannot be tried, and the page has no credential of an app or of its users. */
function triedPart(one: DocOperation, { description }: ApiReference): Markup | undefined {
  const { path, operation, request } = one
  const { security } = operation
  const is_for_programs =
    security.length > 0 && security.every((each) => PROGRAMS.some((name) => name in each))
  if (request.socket !== undefined || is_for_programs) return undefined
  const query = ownParameters(one, description).filter((each) => each.in === "query")
  return tryPlace(
    request,
    path,
    query.map(({ name }) => name),
  )
}

function needsOf({ operation, request }: DocOperation): Markup {
  const scope = operation["x-required-scope"]
  if (operation.security.length === 0) return html`Needs no credential.`
  const scopes = scope.split("|").map((one, at) => html`${at > 0 && " or "}<code>${one}</code>`)
  const token = request.credential?.variable === "BELFRY_TOKEN" && TOKEN
  const is_free = operation.security.some((each) => PROGRAMS.some((name) => name in each))
  const others = scope !== "-" && is_free && " Apps and the people in them need none."
  return html`Needs ${scope === "-" ? "a credential" : html`the scope ${scopes}`}.${others} ${token}`
}

/** Credentials of apps, and of their users: a page of the reference has none. */
const PROGRAMS = ["applicationKey", "userToken", "inboxToken"]

const TOKEN = html`Only people may call it. <code>BELFRY_TOKEN</code> is the
<code>access_token</code> of <a href="/docs/postSession">a session</a>.`

const PLACES = { path: "Path", query: "Query", header: "Headers" }

/** Those that every list takes are told on the first page. */
const OF_LISTS = ["page", "per_page", "cursor", "limit", "after", "before"]

function parameterParts(one: DocOperation, { description }: ApiReference): Markup | undefined {
  const all = ownParameters(one, description)
  const is_list = all.some(({ name }) => name === "per_page")
  const is_repeatable = JSON.stringify(one.operation.parameters).includes("IdempotencyKey")
  const own = is_list ? all.filter(({ name }) => !OF_LISTS.includes(name)) : all
  const tables = (["path", "query", "header"] as const).map((place) => {
    const fields = own.filter((each) => each.in === place).map(parameterField)
    return fields.length > 0 && html`<h3>${PLACES[place]}</h3>${fieldTable(fields, true)}`
  })
  if (all.length === 0 && !is_repeatable) return undefined
  return html`
<h2 id="parameters">Parameters</h2>
${tables}${is_list && LISTS}${is_repeatable && REPEATABLE}`
}

const LISTS = html`<p>Like <a href="/docs#answers">every list</a>, it takes ${OF_LISTS.map(
  (name, at) => html`${at > 0 && ", "}<code>${name}</code>`,
)}.</p>`

const REPEATABLE = html`<p>It accepts the header <a href="/docs#repeat"><code>Idempotency-Key</code></a>.</p>`

function bodyPart(one: DocOperation, { description }: ApiReference): Markup | undefined {
  const schema = bodyOf(one, description)
  const fields = schema && fieldsOf(schema)
  if (!fields || fields.length === 0) return undefined
  const others = schema ? notOfferedIn(schema) : []
  return html`
<h2 id="body">Body</h2>
${fieldTable(fields, true)}${others.length > 0 && noneOf(others)}`
}

const noneOf = (names: string[]) => html`
<p class="needs">This server does not have ${names.map(
  (name, at) => html`${at > 0 && ", "}<code>${name}</code>`,
)}: another value than null is refused.</p>`

function answerPart(
  { status, type, schema, example }: DocAnswer,
  description: ApiReference["description"],
) {
  const whole = withoutReferences(schema, description)
  const properties = (whole.properties ?? {}) as Record<string, Schema>
  const data = properties.meta ? (properties.data ?? {}) : whole
  const fields: DocField[] = fieldsOf(data)
  const is_json = type === "application/json"
  const kind = is_json ? html`${properties.meta && html`<code>data</code>: `}${kindOf(data)}` : type
  const text = is_json ? JSON.stringify(example, null, 2) : String(example ?? "")
  return html`
<h3>${status} ${kind}</h3>
${type !== "" && codeBlock(text, "Response")}
${fields.length > 0 && html`<details><summary>Fields of the response</summary>${fieldTable(fields, false)}</details>`}`
}

/** The codes of this operation alone, and then those of any operation. */
function failurePart(failures: DocFailure[]): Markup {
  const own = failures.flatMap(({ status, codes }) => {
    const special = codes.filter((code) => !commonCodes.includes(code))
    return special.length > 0 ? [{ status, codes: special }] : []
  })
  const common = failures.flatMap(({ status, codes }) => {
    const usual = codes.filter((code) => commonCodes.includes(code))
    return usual.length > 0 ? [{ status, codes: usual }] : []
  })
  return html`${own.length > 0 && failureTable(own)}
<details${own.length === 0 && OPEN}><summary>Errors of most operations</summary>${failureTable(common)}</details>
<p class="needs">Each code links its causes and what to do. <a href="/docs#errors">All errors have one form</a>.</p>`
}

const OPEN = html` open`

/** Codes with their causes, by status. */
const failureTable = (failures: DocFailure[]): Markup =>
  html`<div class="fields codes" role="table">${failures.flatMap(({ status, codes }) =>
    codes.map(
      (code) => html`
<div role="row"><span role="cell">${status}</span><span role="cell"><a href="/docs/errors/${code}"><code>${code}</code></a></span><span role="cell">${meaningOf(code)}</span></div>`,
    ),
  )}
</div>`
