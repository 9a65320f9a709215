import { EXAMPLE_ID } from "../lib/record-fields"
import { reference } from "./openapi-components"
import type { SchemaComponents } from "./openapi-schemas"
import { needOf } from "./permit"
import type { AnyRoute } from "./route"

/** From the path, the query and the headers that the route itself reads. */
export function parametersOf(route: AnyRoute, schemas: SchemaComponents) {
  const names = [...route.path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => name)
  const common = route.path.startsWith("/v1/") ? [reference("parameters", "RequestId")] : []
  return [
    ...names.map((name) => ({
      name,
      in: "path" as const,
      required: true,
      description: ABOUT[name] ?? `The id of the ${name.replace(/_id$/, "")}.`,
      ...pathField(name, route.choices?.[name]),
    })),
    ...fieldsOf(route.query, "query", schemas),
    ...fieldsOf(route.headers, "header", schemas),
    ...contextOf(route),
    ...(route.idempotent ? [reference("parameters", "IdempotencyKey")] : []),
    ...(route.body || route.query ? [reference("parameters", "Strict")] : []),
    ...common,
  ]
}

/** What is named in a path: mostly an id, with one that could stand there. */
function pathField(name: string, words: readonly string[] | undefined) {
  if (words) return { schema: { type: "string", enum: words }, example: words[0] ?? "" }
  const known = PATH_EXAMPLES[name]
  if (known !== undefined) return { schema: { type: "string" }, example: known }
  return { schema: { type: "string", format: "uuid" }, example: EXAMPLE_ID }
}

const PATH_EXAMPLES: Record<string, string> = {
  event_id: `evt_${EXAMPLE_ID}`,
  attachment_id: EXAMPLE_ID,
  token: "it_Zk3vX9",
  provider: "ses",
  config_token: "cb_Zk3vX9",
  queue: "email",
}

/** The path of one request. */
export const filledPath = ({ path, choices }: AnyRoute): string =>
  path.replaceAll(/\{(\w+)\}/g, (_, name: string) => pathField(name, choices?.[name]).example)

/** What a console caller has to choose, where a key already says it. */
function contextOf(route: AnyRoute) {
  const need = route.callers.includes("console") ? needOf(route) : "user"
  if (route.callers.includes("none") || need === "user") return []
  const account = reference("parameters", "AccountId")
  const named = need === "account" || route.path.includes("{project_id}")
  return named ? [account] : [account, reference("parameters", "ProjectId")]
}

function fieldsOf(schema: AnyRoute["query"], place: "query" | "header", schemas: SchemaComponents) {
  return Object.entries(schema?.properties ?? {}).map(([name, field]) => {
    const { description, ...rest } = schemas.show(field)
    const required = (schema?.required ?? []).includes(name) && rest.default === undefined
    const about = typeof description === "string" ? description : (ABOUT[name] ?? "")
    return { name, in: place, required, description: about, schema: rest }
  })
}

/** Of parameters that mean the same wherever they are, and whose schema does not say it. */
const ABOUT: Record<string, string> = {
  action: "Only this action, such as `api_key.revoked`.",
  actor_id: "Only changes by this person or key.",
  batch_id: "Only emails of this batch.",
  category: "Only types of this category.",
  config_id: "The id of the configured provider.",
  config_token: "The secret part of `callback_url`.",
  created_after: "Only records made at this time or later. The time needs an offset.",
  created_before: "Only records made before this time. The time needs an offset.",
  event_id: "The id of the event.",
  event_type: "Only deliveries of this type of event.",
  format: "The format of the answer (default: `bind`).",
  from: "Only this sender.",
  key_id: "The id of the API key.",
  kind: "The kind of messages that the provider carries.",
  limit: "Maximum number of records in the answer.",
  mail_id: "The id of the mail in the mailbox.",
  page: "The number of the page, from 1.",
  per_page: "Number of records on a page.",
  provider: "The name of the provider.",
  queue: "The name of a queue, or of a queue and a domain: `email:example.com`.",
  request_id: "Only this request.",
  search: "Only records with this text in the sender, the recipient or the subject.",
  since: "Only records of this time or later. The time needs an offset.",
  status: "Only records of this status.",
  stream: "Only emails of this stream.",
  tag: "Only emails with this tag.",
  target_type: "Only changes of this kind of thing, such as `api_key`.",
  template_id: "Only emails of this template.",
  to: "Only this recipient.",
  token: "The token of the link in the mail.",
  window: "The time span: the last day or the last week.",
}
