import type { Client } from "./client"
import { version } from "./environment"
import { Failure, usage } from "./errors"
import { isObject } from "./input"
import { callTool, type McpTool } from "./mcp-tools"
import { write } from "./output"

/** Revisions of the protocol, the newest first. The messages that are used here are the same in all of them. */
const REVISIONS = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"]

/** The largest email that the API takes fits into one message. */
const MOST_CHARACTERS = 16_777_216

/** So many messages are answered at once; the next ones wait in the pipe. */
const MOST_AT_ONCE = 8

/** Tools of one answer to `tools/list`. */
const PAGE = 100

/** Errors of JSON-RPC 2.0 (section 5.1). */
const CODES = { parse: -32700, request: -32600, method: -32601, params: -32602 }

/** Answers a request. What it throws is an error of the protocol; a tool that fails is an answer. */
type Method = (params: Record<string, unknown>) => unknown
type Methods = ReadonlyMap<string, Method>

/** A server of the Model Context Protocol over stdin and stdout. It ends with stdin. */
export async function serveMcp(methods: Methods): Promise<void> {
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

/** The methods of a server that has tools and nothing else. */
export const toolMethods = (client: Client, tools: readonly McpTool[]): Methods =>
  new Map<string, Method>([
    ["initialize", ({ protocolVersion }) => welcome(String(protocolVersion), client.url)],
    ["ping", () => ({})],
    ["tools/list", ({ cursor = 0 }) => pageOf(tools, Number(cursor))],
    [
      "tools/call",
      ({ name, arguments: given = {} }) => {
        const tool = tools.find(({ shown }) => shown.name === name)
        if (!tool || !isObject(given)) throw usage(`There is no tool ${name}.`)
        return callTool(client, tool, given)
      },
    ],
  ])

/** A client of a revision that is not known gets the newest one, and may leave. */
const welcome = (asked: string, url: string) => ({
  protocolVersion: REVISIONS.includes(asked) ? asked : REVISIONS[0],
  capabilities: { tools: {} },
  serverInfo: { name: "belfry", version },
  instructions: `Each tool is one request to one project of the Belfry server at ${url}.`,
})

function pageOf(tools: readonly McpTool[], begin: number) {
  if (!(begin === 0 || begin in tools)) throw usage("There is no such cursor.")
  const end = begin + PAGE
  const next = end < tools.length && { nextCursor: String(end) }
  return { tools: tools.slice(begin, end).map(({ shown }) => shown), ...next }
}

async function* linesOf(input: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let line = ""
  for await (const bytes of input) {
    for (const [at, part] of decoder.decode(bytes, { stream: true }).split("\n").entries()) {
      if (at > 0) {
        yield line
        line = ""
      }
      line += part
      if (line.length > MOST_CHARACTERS) throw usage("a message has more than 16 MiB")
    }
  }
}

/** The answer to a message, or to each of a batch (revision 2025-03-26). Undefined where none is wanted. */
async function answerLine(line: string, methods: Methods): Promise<object | undefined> {
  let message: unknown
  try {
    message = JSON.parse(line)
  } catch {
    return refusal(null, CODES.parse, "The message is not JSON.")
  }
  if (!Array.isArray(message)) return await answerTo(message, methods)
  const answers: (object | undefined)[] = []
  for (const one of message) answers.push(await answerTo(one, methods))
  const wanted = answers.filter((one) => one !== undefined)
  return wanted.length > 0 ? wanted : undefined
}

async function answerTo(message: unknown, methods: Methods): Promise<object | undefined> {
  if (!isObject(message)) return refusal(null, CODES.request, "The message is no object.")
  const { id, method, params } = message
  if (id === undefined) return undefined // a notification, and none changes anything here
  const answer = methods.get(String(method))
  if (!answer) return refusal(id, CODES.method, `There is no method ${method}.`)
  try {
    return { jsonrpc: "2.0", id, result: await answer(isObject(params) ? params : {}) }
  } catch (error) {
    if (error instanceof Failure) return refusal(id, CODES.params, error.message)
    throw error
  }
}

const refusal = (id: unknown, code: number, message: string) => ({
  ...{ jsonrpc: "2.0", id },
  error: { code, message },
})
