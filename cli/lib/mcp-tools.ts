import { isUtf8 } from "node:buffer"
import { type OperationName, paramsOf } from "../../src/client/client"
import type { OperationRow } from "../../src/client/operation"
import { operations } from "../../src/client/operations"
import type { ReferenceOperation } from "./api-reference"
import type { Client } from "./client"
import { errorBody, Failure, usage } from "./errors"
import { isObject } from "./input"

/** A tool of the Model Context Protocol that does one operation of the API. */
export interface McpTool {
  operation: OperationName
  /** As `tools/list` shows it. */
  shown: { name: string; inputSchema: { properties: object } }
}

/** About 80,000 tokens. A model that reads more forgets what it was asked. */
const MOST_BYTES = 262_144

/** The operations that these scopes allow, in the order of the reference. Without `write` those that only read. */
export function toolsFor(
  reference: readonly ReferenceOperation[],
  scopes: readonly string[],
  write: boolean,
): McpTool[] {
  const granted = ["-", ...scopes]
  return reference.flatMap((one) => {
    const operation = `${one.method} ${one.path}` as OperationName
    const wanted = one["x-required-scope"].split("|")
    const may = scopes.includes("*") || wanted.some((scope) => granted.includes(scope))
    const is_open = one["x-callers"].includes("key") && may && (write || one.method === "GET")
    return is_open && operation in operations ? [toolOf(operation, one)] : []
  })
}

const IDEMPOTENCY_KEY = {
  type: "string",
  description: "Makes a repetition safe: the same key with the same body gets the first answer.",
}

function toolOf(operation: OperationName, one: ReferenceOperation): McpTool {
  const { operationId: name, summary: title, description = "", method, requestBody } = one
  const { query = {}, paged, idempotent }: OperationRow = operations[operation]
  const turns = paged ? ["per_page", "cursor"] : []
  const taken = [...paramsOf(operation), ...Object.keys(query), ...turns]
  const fields = one.parameters.filter((field) => taken.includes(field.name))
  const body = requestBody?.content["application/json"]?.schema
  const needed = fields.filter(({ required }) => required).map((field) => field.name)
  const properties = {
    ...Object.fromEntries(
      fields.map((field) => [field.name, { description: field.description, ...field.schema }]),
    ),
    ...(body && { body }),
    ...(idempotent && { idempotency_key: IDEMPOTENCY_KEY }),
  }
  const required = [...needed, ...(requestBody?.required ? ["body"] : [])]
  const shown = {
    ...{ name, title, description: `${title}. ${description}`.trimEnd() },
    inputSchema: { type: "object", properties, required, additionalProperties: false },
    annotations: { readOnlyHint: method === "GET" },
  }
  return { operation, shown }
}

/** Does what a tool is for. Every refusal is an answer, so that the model can read it. */
export async function callTool(client: Client, tool: McpTool, given: unknown) {
  const said = (text: string, isError: boolean) => ({ content: [{ type: "text", text }], isError })
  try {
    return said(textOf(await client.send(tool.operation, inputFrom(tool, given ?? {}))), false)
  } catch (error) {
    return said(error instanceof Failure ? errorBody(error) : String(error), true)
  }
}

function inputFrom({ operation, shown }: McpTool, given: unknown) {
  const names = Object.keys(shown.inputSchema.properties)
  if (!isObject(given)) throw usage("The arguments are no object.")
  const unknown = Object.keys(given).find((name) => !names.includes(name))
  if (unknown !== undefined)
    throw usage(`There is no argument ${unknown}: give ${names.join(", ")}.`)
  const told = Object.entries(given).filter(([, value]) => value !== null) // as many models leave out
  const { body, idempotency_key: key, ...fields } = Object.fromEntries(told)
  const texts = Object.entries(fields).map(([name, value]) => [name, String(value)] as const)
  const params = paramsOf(operation)
  return {
    params: Object.fromEntries(texts.filter(([name]) => params.includes(name))),
    query: Object.fromEntries(texts.filter(([name]) => !params.includes(name))),
    ...(body !== undefined && { body }),
    ...(key !== undefined && { headers: { "idempotency-key": String(key) } }),
  }
}

function textOf(answer: unknown): string {
  const bytes = answer instanceof Uint8Array ? answer : Buffer.from(JSON.stringify(answer))
  // Something may have changed, so that the model must not take this for a refusal.
  if (bytes.length > MOST_BYTES) {
    const told = `The request was done. Its answer has more than ${MOST_BYTES} bytes: ask for less.`
    throw usage(told)
  }
  if (!isUtf8(bytes)) throw usage("The answer is no text, so a tool cannot show it.")
  return Buffer.from(bytes).toString()
}
