import type { Client } from "./client"
import { version } from "./environment"
import { usage } from "./errors"
import { isObject, linesOf } from "./input"
import { callTool, type McpTool } from "./mcp-tools"
import { write } from "./output"

/** Revisions of the protocol, the newest first. The messages that are used here are the same in all of them. */
const REVISIONS = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"]

/** So many messages are answered at once; the next ones wait in the pipe. */
const MOST_AT_ONCE = 8

/** Errors of JSON-RPC 2.0 (section 5.1). */
const CODES = { parse: -32700, request: -32600, method: -32601, params: -32602 }

/** Answers a request. What it throws is an error of the protocol; a tool that fails is an answer. */
type Method = (params: Record<string, unknown>) => unknown
type Methods = ReadonlyMap<string, Method>

/** A server of the Model Context Protocol over stdin and stdout, with tools alone. It ends with stdin. */
export async function serveMcp(client: Client, tools: readonly McpTool[]): Promise<void> {
  const methods: Methods = new Map<string, Method>([
    ["initialize", ({ protocolVersion }) => welcome(protocolVersion, client.url)],
    ["ping", () => ({})],
    // All at once, because many clients read the first page alone.
    ["tools/list", () => ({ tools: tools.map(({ shown }) => shown) })],
    ["tools/call", ({ name, arguments: given }) => callTool(client, toolNamed(tools, name), given)],
  ])
  const running = new Set<Promise<unknown>>()
  for await (const line of linesOf(Bun.stdin.stream())) {
    const answered = answerLine(line, methods)
      .then((answer) => answer && write(process.stdout, `${JSON.stringify(answer)}\n`))
      .finally(() => running.delete(answered))
    running.add(answered)
    if (running.size >= MOST_AT_ONCE) await Promise.race(running)
  }
  await Promise.all(running)
}

/** A client of a revision that is not known gets the newest one, and may leave. */
const welcome = (asked: unknown, url: string) => ({
  protocolVersion: REVISIONS.find((one) => one === asked) ?? REVISIONS[0],
  capabilities: { tools: {} },
  serverInfo: { name: "belfry", version },
  instructions: `Each tool is one request to one project of the Belfry server at ${url}.`,
})

function toolNamed(tools: readonly McpTool[], name: unknown): McpTool {
  const tool = tools.find(({ shown }) => shown.name === name)
  if (tool) return tool
  throw usage(`There is no tool ${JSON.stringify(name)}.`)
}

/** The answer to a message, or to each of a batch (revision 2025-03-26). Undefined where none is wanted. */
async function answerLine(line: string, methods: Methods): Promise<object | undefined> {
  let message: unknown
  try {
    message = JSON.parse(line)
  } catch {
    return refusal(null, CODES.parse, "The message is not JSON.")
  }
  if (!Array.isArray(message) || message.length === 0) return await answerTo(message, methods)
  const answers = await Array.fromAsync(message, (one) => answerTo(one, methods)) // one by one
  const wanted = answers.filter((one) => one !== undefined)
  return wanted.length > 0 ? wanted : undefined
}

async function answerTo(message: unknown, methods: Methods): Promise<object | undefined> {
  const { id, method, params }: Record<string, unknown> = isObject(message) ? message : { id: null }
  if (id === undefined) return undefined // a notification, and none changes anything here
  if (typeof method !== "string" || !["string", "number"].includes(typeof id)) {
    return refusal(null, CODES.request, "A request has a method, and a text or a number as its id.")
  }
  const answer = methods.get(method)
  if (!answer) return refusal(id, CODES.method, `There is no method ${method}.`)
  try {
    return { jsonrpc: "2.0", id, result: await answer(isObject(params) ? params : {}) }
  } catch (error) {
    return refusal(id, CODES.params, error instanceof Error ? error.message : String(error))
  }
}

const refusal = (id: unknown, code: number, message: string) => ({
  ...{ jsonrpc: "2.0", id },
  error: { code, message },
})
