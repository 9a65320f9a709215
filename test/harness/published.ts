import { brotliDecompressSync, gunzipSync } from "node:zlib"
import { type AppParts, routeTable } from "../../src/app"
import type { OpenApi } from "../../src/http/openapi"
import { type JsonSchema, judges } from "./json-schema"
import { keptForRun } from "./kept-for-run"
import { remember } from "./untold"

interface Row {
  method: string
  path: string
  shape: RegExp
  parameters: number
  responses: Record<string, Published>
}

interface Published {
  $ref?: string
  "x-error-codes"?: string[]
  headers?: Record<string, object>
  content?: Record<string, { schema: JsonSchema }>
}

/** What is told of the interface: the bytes of `/v1/openapi.json`, made once a run. */
let description: Promise<OpenApi> | undefined

async function readDescription(): Promise<OpenApi> {
  const make = async (draft: string) => void (await Bun.write(draft, await madeDescription()))
  const path = await keptForRun("openapi.json", make)
  return JSON.parse(path ? await Bun.file(path).text() : await madeDescription())
}

async function madeDescription(): Promise<string> {
  const row = routeTable({} as AppParts).find(({ path }) => path === "/v1/openapi.json")
  const answer = (await row?.handle({
    request: new Request("http://belfry.test/"),
  } as never)) as Response
  return await answer.text()
}

export function published(): Promise<OpenApi> {
  description ??= readDescription()
  return description
}

let asked: Promise<ReturnType<typeof lookups>> | undefined

function lookups(document: OpenApi) {
  const rows = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { responses }]): Row => {
      const shape = new RegExp(`^${path.replaceAll(".", "\\.").replaceAll(/\{\w+\}/g, "[^/]+")}$`)
      const parameters = path.split("{").length - 1
      return {
        method: method.toUpperCase(),
        path,
        shape,
        parameters,
        responses: responses as never,
      }
    }),
  )
  rows.sort((a, b) => a.parameters - b.parameters) // a literal wins over a parameter
  const validatorOf = judges(document)
  const { Error: failure } = document.components.schemas
  const rowOf = (method: string, path: string) =>
    rows.find((row) => row.method === method && row.shape.test(path))
  const responseOf = (row: Row, status: number): Published | undefined => {
    const found = row.responses[status]
    const name = found?.$ref?.split("/").at(-1)
    return name ? (document.components.responses[name] as Published) : found
  }
  return { rowOf, responseOf, judgeOf: validatorOf, failure: failure as JsonSchema }
}

/** The same answer, held against what is published: the test that saw another one fails. */
export async function seen(method: string, path: string, answer: Response): Promise<Response> {
  remember(await faultsOf(method, path.split("?", 1)[0] ?? "", answer))
  return answer
}

/**
 * What is wrong with an answer, as the published description has it: a status or a content type that
 * its route does not list, a field that its schema does not name, a value outside of it.
 */
export async function faultsOf(method: string, path: string, answer: Response): Promise<string[]> {
  const is_bare = [101, 302, 304].includes(answer.status) // a connection, or what is elsewhere already
  if (method === "HEAD" || method === "OPTIONS" || is_bare) return []
  const type = answer.headers.get("content-type")?.split(";")[0] ?? ""
  asked ??= published().then(lookups)
  const { rowOf, responseOf, judgeOf, failure } = await asked
  const row = rowOf(method, path)
  const at = `${method} ${row?.path ?? path} ${answer.status}`
  if ((!row && type === "text/html") || BESIDE.test(path)) return [] // a page for people
  const told = row && responseOf(row, answer.status)
  const content = told?.content?.[type] ?? told?.content?.["*/*"]
  const schema = row ? content?.schema : failure
  if (!row && answer.status !== 404) return [`${at}: the description has no such path`]
  if (!schema) return [`${at}: the description has no answer of that status and the type ${type}`]
  const out = told ? untoldHeaders(answer, told) : []
  if (type !== "application/json") return out.map((text) => `${at}: ${text}`)
  const body = JSON.parse(await unpacked(answer.clone())) as {
    error?: { code: string; message: string }
  }
  judgeOf(schema)(body, "body", out)
  const known = told?.["x-error-codes"]
  if (known && !known.includes(body.error?.code ?? "")) {
    out.push(`body.error.code: none of its codes: ${body.error?.code}: ${body.error?.message}`)
  }
  return out.map((text) => `${at}: ${text}`)
}

interface PackedAnswer {
  bytes(): Promise<Uint8Array>
  headers: { get(name: string): string | null }
}

/** The text of an answer, whatever its coding. */
async function unpacked(answer: PackedAnswer): Promise<string> {
  const bytes = await answer.bytes()
  const coding = answer.headers.get("content-encoding")
  const unpack = { br: brotliDecompressSync, gzip: gunzipSync }[coding ?? ""]
  return Buffer.from(unpack ? unpack(bytes) : bytes).toString()
}

/** Pixels and links of mails, files of pages and their session: no program calls them. */
const BESIDE = /^\/((t\/[oc]|assets)\/[^/]+|docs\/search-index|session(\/\w+)?)$/

/** Headers of our own are published; those of the protocol are not listed one by one. */
const OWN =
  /^(x-(?!content-type-options|frame-options|robots-tag)|ratelimit|retry-after|idempotent|link$)/

function untoldHeaders({ headers }: Response, told: Published): string[] {
  const known = Object.keys(told.headers ?? {}).map((name) => name.toLowerCase())
  const own = [...headers.keys()].filter((name) => OWN.test(name))
  return own.filter((name) => !known.includes(name)).map((name) => `the header ${name} is not told`)
}
