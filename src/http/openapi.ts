import * as components from "./openapi-components"
import { failures } from "./openapi-errors"
import { eventDescriptions } from "./openapi-events"
import { filledPath, parametersOf } from "./openapi-parameters"
import { bodyOf, responsesOf } from "./openapi-parts"
import { sampleOf } from "./openapi-samples"
import { SchemaComponents } from "./openapi-schemas"
import { TAGS } from "./openapi-tags"
import type { AnyRoute, CallerKind } from "./route"

export type Schema = Record<string, unknown>

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

const ABOUT =
  "Every success is `{data, meta}`. Every failure is `{error: {code, message, details}, meta}`. " +
  "Branch on the status and `error.code`, never on the message. Repeat a request after 429, 500, " +
  "502, 503 and 504, with growing pauses. Every other error is final."

/** Describes the table: TypeBox schemas are JSON Schema, which OpenAPI 3.1 takes as it is. */
export function openApi(routes: AnyRoute[], version: string): OpenApi {
  const schemas = new SchemaComponents()
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
      description: ABOUT,
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    servers: [{ url: "/" }],
    tags: [...new Set(routes.map(tagOf))].map((name) => ({ name, description: TAGS[name] ?? "" })),
    paths,
    webhooks: events.webhooks,
    components: {
      securitySchemes: components.securitySchemes,
      parameters: components.parameters,
      headers: components.headers,
      schemas: { ...components.schemas(), ...schemas.named, ...events.schemas },
      responses: failures(),
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
    "x-codeSamples": [sampleOf(route, filledPath(route))],
    security: securityOf(route),
    parameters: parametersOf(route, schemas),
    ...(requestBody && { requestBody }),
    responses: responsesOf(route, schemas),
  }
}

/** An empty object means that the credential may be left out. */
function securityOf({ callers }: AnyRoute): Operation["security"] {
  const key = callers.includes("key") ? [{ apiKey: [] }] : []
  const bearer = key.length > 0 || callers.includes("console") ? [{ bearer: [] }] : []
  const named = [...key, ...bearer]
  return callers.includes("none") && named.length > 0 ? [{}, ...named] : named
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

/** The first word behind `/v1`; what lives outside is about the server itself. */
function tagOf({ path }: AnyRoute): string {
  const [, version, area = ""] = path.split("/")
  return version === "v1" && !/^(health|openapi)/.test(area) ? area : "server"
}
