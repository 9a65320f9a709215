import { EXAMPLE_ID } from "../lib/record-fields"
import type { Schema } from "./openapi-schemas"
import type { AnyRoute } from "./route"

/** One request of a route, filled with values that could stand there. */
export interface ExampleRequest {
  method: string
  path: string
  /** The header of the credential, and the variable of the environment that holds it. */
  credential?: { header: string; prefix: string; variable: string }
  body?: unknown
  produces: string
  socket?: string
}

/** The request that the reference shows for a route. Required fields of the query are filled. */
export function exampleRequest(route: AnyRoute): ExampleRequest {
  const { method, body, example, produces = "application/json", socket } = route
  const credential = credentialOf(route)
  return {
    method,
    path: filledPath(route) + filledQuery(route),
    produces,
    ...(credential && { credential }),
    ...(body && { body: example }),
    ...(socket !== undefined && { socket }),
  }
}

/** Where an example saves an answer that is a file. Undefined for an answer that people read. */
export const savedAs = ({ produces }: ExampleRequest): string | undefined => FILES[produces]

const FILES: Record<string, string> = { "*/*": "file", "message/rfc822": "mail.eml" }

/** The request as a command for a shell. `BELFRY_URL` and the credential come from the environment. */
export function curlExample(request: ExampleRequest) {
  const { method, path, credential, body, socket } = request
  const file = savedAs(request)
  const proof = credential
    ? [`-H "${credential.header}: ${credential.prefix}$${credential.variable}"`]
    : []
  if (socket !== undefined) {
    return ["websocat", ...proof, `--protocol ${socket} "$BELFRY_WS_URL${path}"`].join(" ")
  }
  const parts = [
    `curl -sS ${method === "GET" ? "" : `-X ${method} `}"$BELFRY_URL${path}"`,
    ...proof,
    ...(file === undefined ? [] : [`-L -o ${file}`]),
    ...(body === undefined ? [] : ['-H "Content-Type: application/json"', `-d ${quoted(body)}`]),
  ]
  return parts.join(" \\\n  ")
}

const LONGEST_LINE = 76

function quoted(body: unknown): string {
  const short = JSON.stringify(body)
  const long = JSON.stringify(body, null, 2).replaceAll("\n", "\n  ")
  const text = short.length > LONGEST_LINE ? long : short
  return `'${text.replaceAll("'", "'\\''")}'`
}

function credentialOf({ callers }: AnyRoute): ExampleRequest["credential"] {
  const bearer = { header: "Authorization", prefix: "Bearer " }
  if (callers.includes("key"))
    return { header: "X-API-Key", prefix: "", variable: "BELFRY_API_KEY" }
  if (callers.includes("app"))
    return { header: "X-Application-Key", prefix: "", variable: "BELFRY_APPLICATION_KEY" }
  if (callers[0] === "user") return { ...bearer, variable: "USER_TOKEN" }
  if (callers.includes("subscriber")) return { ...bearer, variable: "INBOX_TOKEN" }
  return callers[0] === "console" ? { ...bearer, variable: "BELFRY_TOKEN" } : undefined
}

const filledPath = (route: AnyRoute): string =>
  route.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => pathField(route, name).example)

/** What is named in a path: mostly an id, with one that could stand there. */
export function pathField({ path, choices }: Pick<AnyRoute, "path" | "choices">, name: string) {
  const words = choices?.[name]
  if (words) return { schema: { type: "string", enum: words }, example: words[0] ?? "" }
  const known = OWN_PATH_EXAMPLES[path]?.[name] ?? PATH_EXAMPLES[name]
  if (known !== undefined) return { schema: { type: "string" }, example: known }
  return { schema: { type: "string", format: "uuid" }, example: EXAMPLE_ID }
}

/** By route, where the name means something else than elsewhere. */
const OWN_PATH_EXAMPLES: Record<string, Record<string, string> | undefined> = {
  "/v1/emails/{email_id}/attachments/{attachment_id}": { attachment_id: EXAMPLE_ID },
}

const PATH_EXAMPLES: Record<string, string> = {
  event_id: `evt_${EXAMPLE_ID}`,
  attachment_id: "0",
  token: "it_Zk3vX9",
  provider: "ses",
  config_token: "cb_Zk3vX9",
  queue: "email",
  topic_key: "news",
}

function filledQuery({ query }: AnyRoute): string {
  const properties = (query?.properties ?? {}) as Record<string, Schema>
  const needed = ((query?.required ?? []) as string[]).filter(
    (name) => properties[name]?.default === undefined,
  )
  const fields = needed.map((name): [string, string] => [
    name,
    queryWord(name, properties[name] ?? {}),
  ])
  return fields.length === 0 ? "" : `?${new URLSearchParams(fields)}`
}

function queryWord(name: string, { examples, anyOf, const: only }: Schema): string {
  const [said] = (examples as unknown[] | undefined) ?? []
  const [first] = (anyOf as Schema[] | undefined) ?? []
  return String(said ?? only ?? first?.const ?? QUERY_EXAMPLES[name] ?? "example")
}

const QUERY_EXAMPLES: Record<string, string> = {
  address: "ann@example.com",
  to: "ann@mailbox.test",
}
