import { type TObject, type TSchema, Type as t } from "@sinclair/typebox"
import { AREA_OF_SECRETS, needOf } from "./authorize"
import { curlExample, exampleRequest, pathField } from "./example-request"
import { FieldWarning } from "./field-schemas"
import { MAX_KEYS, MAX_VALUES } from "./json"
import * as shared from "./openapi-components"
import { eventDescriptions, type Schema, SchemaComponents, TEXTS } from "./openapi-schemas"
import type { AnyRoute, CallerKind } from "./route"

export interface Parameter {
  name: string
  in: "path" | "query" | "header"
  required: boolean
  description?: string
  example?: string
  schema: Schema
}

export interface Reference {
  $ref: string
}

export interface Operation {
  operationId: string
  summary: string
  description?: string
  tags: string[]
  "x-callers": CallerKind[]
  "x-required-scope": string
  "x-codeSamples": { lang: string; source: string }[]
  security: Record<string, string[]>[]
  parameters: (Parameter | Reference)[]
  requestBody?: {
    required: boolean
    content: Record<string, { schema: Schema; example?: unknown }>
  }
  responses: Record<string, object>
}

/** The parts of an OpenAPI 3.1 document that this server writes. */
export interface OpenApi {
  openapi: "3.1.0"
  info: { title: string; version: string; description: string; license: object }
  servers: { url: string }[]
  tags: { name: string; description: string }[]
  paths: Record<string, Record<string, Operation>>
  /** What endpoints are sent, by type of event. */
  webhooks: Record<string, object>
  components: {
    securitySchemes: Record<string, object>
    parameters: Record<string, Parameter>
    headers: Record<string, object>
    schemas: Record<string, Schema>
    responses: Record<string, object>
  }
}

const DESCRIPTION =
  "Every success is `{data, meta}`. Every failure is `{error: {code, message, details}, meta}`. " +
  "Branch on the status and `error.code`, never on the message. Repeat a request after 429, 500, " +
  "502, 503 and 504, with growing pauses. Every other error is final. Unknown fields are ignored. " +
  "`meta.warnings` names those that are almost a known field."

/** Describes the table: TypeBox schemas are JSON Schema, which OpenAPI 3.1 takes as it is. */
export function openApi(routes: AnyRoute[], version: string): OpenApi {
  const schemas = new SchemaComponents()
  schemas.show(shared.Failure)
  const events = eventDescriptions()
  const paths: OpenApi["paths"] = {}
  for (const route of routes) {
    const methods = paths[route.path] ?? {}
    methods[route.method.toLowerCase()] = operationOf(route, schemas)
    paths[route.path] = methods
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Belfry",
      version,
      description: DESCRIPTION,
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    servers: [{ url: "/" }],
    tags: [...new Set(routes.map(tagOf))].map((name) => ({ name, description: TAGS[name] ?? "" })),
    paths,
    webhooks: events.webhooks,
    components: {
      securitySchemes: schemesOf(routes),
      parameters: shared.parameters,
      headers: shared.headers,
      schemas: { ...schemas.named, ...events.schemas },
      responses: shared.failures(),
    },
  }
}

function operationOf(route: AnyRoute, schemas: SchemaComponents): Operation {
  const requestBody = bodyOf(route, schemas)
  return {
    operationId: operationId(route),
    summary: route.summary,
    ...(route.description !== undefined && { description: route.description }),
    tags: [tagOf(route)],
    "x-callers": route.callers,
    "x-required-scope": route.scope,
    "x-codeSamples": [{ lang: "Shell", source: curlExample(exampleRequest(route)) }],
    security: securityOf(route),
    parameters: parametersOf(route, schemas),
    ...(requestBody && { requestBody }),
    responses: responsesOf(route, schemas),
  }
}

/** An empty object means that the credential may be left out. */
function securityOf({ callers, path }: AnyRoute): Operation["security"] {
  const key = callers.includes("key") ? [{ apiKey: [] }] : []
  const bearer = key.length > 0 || callers.includes("console") ? [{ bearer: [] }] : []
  const secret =
    key.length > 0 && path.startsWith(AREA_OF_SECRETS) ? [{ applicationSecret: [] }] : []
  const app = callers.includes("app") ? [{ applicationKey: [] }] : []
  const user = callers.includes("user") ? [{ userToken: [] }] : []
  const inbox = callers.includes("subscriber") ? [{ inboxToken: [] }] : []
  const named = [...key, ...secret, ...bearer, ...app, ...user, ...inbox]
  return callers.includes("none") && named.length > 0 ? [{}, ...named] : named
}

/** The credentials that routes take. One that no route takes would only puzzle readers. */
function schemesOf(routes: AnyRoute[]): Record<string, object> {
  const taken = new Set(routes.flatMap(securityOf).flatMap(Object.keys))
  return Object.fromEntries(
    Object.entries(shared.securitySchemes).filter(([name]) => taken.has(name)),
  )
}

/** `GET /v1/emails/{email_id}/events` is `getEmailsByEmailIdEvents`: unique, and stable. */
function operationId({ method, path }: AnyRoute): string {
  const words = path
    .replace(/^\/v1(?=\/)/, "")
    .replaceAll(/\{(\w+)\}/g, "by_$1")
    .split(/[^A-Za-z0-9]+/)
    .filter(Boolean)
  const capital = words.map((word) => word.charAt(0).toUpperCase() + word.slice(1))
  return method.toLowerCase() + capital.join("")
}

/** The first word behind `/v1`; what lives outside is in mail, or about the server itself. */
function tagOf({ path, page }: AnyRoute): string {
  if (page) return "links"
  const [, version, area = ""] = path.split("/")
  return version === "v1" && !/^(health|openapi)/.test(area) ? area : "server"
}

/** An absent body counts as `{}`, so it is required only where that would not do. */
function bodyOf(route: AnyRoute, schemas: SchemaComponents) {
  const { body, example, most_keys = MAX_KEYS } = route
  if (!body) return undefined
  const required = body.type !== "object" || ((body.required ?? []) as string[]).length > 0
  const schema = bounded(schemas.show(body), most_keys)
  return { required, content: { "application/json": { schema, example } } }
}

/** Where a list or a free object has no limit of its own, that of the whole body is told. */
function bounded<Part>(part: Part, most_keys: number): Part {
  if (Array.isArray(part)) return part.map((one) => bounded(one, most_keys)) as Part
  if (typeof part !== "object" || part === null) return part
  const inner = Object.entries(part).map(([name, value]) => [name, bounded(value, most_keys)])
  const types = [(part as Schema).type].flat()
  const limits = {
    ...(types.includes("array") && { maxItems: MAX_VALUES }),
    ...(types.includes("object") && !("properties" in part) && { maxProperties: most_keys }),
  }
  return { ...limits, ...Object.fromEntries(inner) }
}

const NO_CONTENT: Record<number, string> = {
  101: "The connection becomes a WebSocket.",
  302: "The answer is at another address.",
}

/** Each success with its envelope, and each failure with its codes. */
function responsesOf(route: AnyRoute, schemas: SchemaComponents): Record<string, object> {
  const versioned = route.path.startsWith("/v1/")
  const headers = {
    ...shared.commonHeaders,
    ...(versioned && shared.rateHeaders),
    ...("page" in (route.query?.properties ?? {}) && { Link: shared.reference("headers", "Link") }),
    ...(route.idempotent && {
      "Idempotent-Replayed": shared.reference("headers", "IdempotentReplayed"),
    }),
  }
  const answers = [...route.status, ...(route.also ?? [])].map((status) => {
    const bare = NO_CONTENT[status]
    if (bare) return [status, { description: bare, headers }] as const
    const content = contentOf(route, schemas)
    return [status, { description: route.summary, headers, content }] as const
  })
  const failures = Object.entries(shared.failuresOf(route)).map(
    ([status, told]) => [status, route.page ? REFUSAL_PAGE : told] as const,
  )
  return Object.fromEntries([...failures, ...answers])
}

function contentOf(route: AnyRoute, schemas: SchemaComponents) {
  const { produces = "application/json", also_produces = [], response } = route
  const text = TEXTS[produces]
  if (text !== undefined) return { [produces]: { schema: BYTES, example: text } }
  const schema = schemas.show(route.produces && response ? response : envelopeOf(route))
  const whole = schemas.exampleOf(schema)
  const filled = (type: string) => TEXTS[type]?.replace("{…}", JSON.stringify(Object(whole).data))
  const foreign = also_produces.map((type) => [type, { schema: BYTES, example: filled(type) }])
  return { [produces]: { schema, example: whole }, ...Object.fromEntries(foreign) }
}

const BYTES = { type: "string" }

const REFUSAL_PAGE = {
  description: "A page that says what is wrong.",
  headers: {
    ...{ ...shared.commonHeaders, ...shared.rateHeaders },
    "Retry-After": shared.reference("headers", "RetryAfter"),
  },
  content: { "text/html": { schema: BYTES, example: TEXTS["text/html"] } },
}

/** `{data, meta}`; a page of rows and a feed have lists for data, and more in meta. */
function envelopeOf({ query, response = t.Unknown(), top, meta, envelope }: AnyRoute): TSchema {
  if (envelope) return envelope
  const asked = query?.properties ?? {}
  const kind = "page" in asked ? "page" : "after" in asked ? "feed" : "one"
  const is_list = kind !== "one"
  const usual = shared.metas[kind]
  return t.Object({
    ...top?.properties,
    data: is_list ? t.Array(response) : response,
    ...(is_list && { has_more: t.Boolean({ description: "A copy of `meta.has_more`." }) }),
    meta: meta ? t.Object({ ...usual.properties, ...withFieldWarnings(meta) }) : usual,
  })
}

/** A route may have warnings of its own in `meta`. Those about fields stand among them. */
function withFieldWarnings({ properties }: TObject): TObject["properties"] {
  const { warnings } = properties
  if (!warnings) return properties
  const list = t.Array(t.Union([warnings.items as TSchema, FieldWarning]), warnings)
  return { ...properties, warnings: t.Optional(list) }
}

/** From the path, the query and the headers that the route itself reads. */
function parametersOf(route: AnyRoute, schemas: SchemaComponents) {
  const names = [...route.path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => name)
  const common = route.path.startsWith("/v1/") ? [shared.reference("parameters", "RequestId")] : []
  return [
    ...names.map((name) => ({
      name,
      in: "path" as const,
      required: true,
      description: ABOUT[name] ?? `The id of the ${name.replace(/_id$/, "")}.`,
      ...pathField(route, name),
    })),
    ...fieldsOf(route.query, "query", schemas),
    ...fieldsOf(route.headers, "header", schemas),
    ...contextOf(route),
    ...(shared.namesEnvironment(route) ? [shared.reference("parameters", "Environment")] : []),
    ...(route.idempotent ? [shared.reference("parameters", "IdempotencyKey")] : []),
    ...(route.body || route.query ? [shared.reference("parameters", "Strict")] : []),
    ...common,
  ]
}

/** What a console caller has to choose, where a key already says it. */
function contextOf(route: AnyRoute) {
  const need = route.callers.includes("console") ? needOf(route) : "user"
  if (route.callers.includes("none") || need === "user") return []
  const account = shared.reference("parameters", "AccountId")
  const named = need === "account" || route.path.includes("{project_id}")
  return named ? [account] : [account, shared.reference("parameters", "ProjectId")]
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
  email: "Only the record with this address.",
  phone_number: "Only the record with this number.",
  q: "Only records with this text in what people search for.",
  event_id: "The id of the event.",
  event_type: "Only deliveries of this type of event.",
  format: "The format of the answer (default: `bind`).",
  from: "Only this sender.",
  extract: "`otp` waits for a mail with a one-time code, `link` for one with a link.",
  inbound_id: "The id of the received mail.",
  key_id: "The id of the key.",
  kind: "The kind of messages that the provider carries.",
  limit: "Maximum number of records in the answer.",
  mail_id: "The id of the mail in the mailbox.",
  page: "The number of the page, from 1.",
  per_page: "Number of records on a page.",
  provider: "The name of the provider.",
  queue: "The name of a queue, or of a queue and a domain: `email:example.com`.",
  request_id: "Only this request.",
  route_id: "The id of the route.",
  scheduled_id: "The id of the scheduled message.",
  search: "Only records with this text in the sender, the recipient or the subject.",
  since: "Only records of this time or later. The time needs an offset.",
  reason: "Only suppressions with this reason.",
  origin: "Only suppressions with this origin.",
  channel: "Only this channel.",
  suppression_id: "The id of the suppression.",
  status: "Only records of this status.",
  stream: "Only emails of this stream.",
  tag: "Only records with this tag.",
  target_type: "Only changes of this kind of thing, such as `api_key`.",
  template_id: "The id of the template. Rendering also takes its name.",
  thread_id: "Only mail of this conversation.",
  to: "Only this recipient.",
  token: "The token of the link.",
  version: "The number of the version.",
  window: "The time span: the last day or the last week.",
}

/** What each part of the interface is about: the first word of its paths. */
const TAGS: Record<string, string> = {
  accounts: "Accounts with their plans, members and limits.",
  admin: "Work of the operator of this instance.",
  ai: "Texts, workflows and advice that a language model writes.",
  "api-keys": "API keys of a project, with their scopes and allowlists.",
  auth: "Applications of a project and their end users: sign-in, sessions, administration.",
  "audit-log": "The changes in an account and their authors.",
  callbacks: "Reports of providers about the emails and texts that they carried.",
  domains: "Domains to send from, and their DNS records.",
  emails: "Emails and their results.",
  events: "The feed and the stream of events.",
  files: "Files of received mail, by signed addresses.",
  "inbound-emails": "Received mail: reading, waiting, answering.",
  "inbound-routes": "What happens with mail to an address.",
  devices: "Apps and browsers that get push messages.",
  inbox: "Messages in the inboxes of subscribers.",
  invitations: "Invitations to an account, for the invited person.",
  jobs: "Long work that continues after the server answered its request.",
  links: "The addresses in mail: unsubscribing, preferences, openings and clicks.",
  mailbox: "The embedded mailbox, which takes mail to `mailbox.test`.",
  password: "A new password for people that forgot theirs.",
  projects: "Projects of an account, and their members.",
  providers: "The servers and services that carry mail and texts.",
  push: "Push messages to devices.",
  queue: "The open work of a project.",
  "request-log": "The requests of the last days.",
  scheduled: "Messages that wait for the time that their sender chose.",
  server: "The server itself: its health and this description.",
  session: "Sign-in and sign-out of people.",
  settings: "The settings of a project.",
  setup: "The first owner of a fresh server.",
  "subscriber-inbox": "The in-app inbox, as its subscriber sees it.",
  subscribers: "The people that get messages.",
  sms: "Texts to phone numbers, and the texts that come back.",
  suppressions: "Addresses that get no messages.",
  templates: "Texts with variables, for all channels.",
  topics: "Subjects that subscribers follow.",
  usage: "The usage of a month, and what is left.",
  users: "Yourself: your data, password, second factor and sessions.",
  webhooks: "Endpoints that get events, and their deliveries.",
}
