import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import Ajv from "ajv"
import { AI_TIERS } from "../../src/ai/actions"
import type { ModelUsage, Prompt } from "../../src/ai/ai-task"
import type { Gateway } from "../../src/ai/gateway"
import type { Settings } from "../../src/core/config"

/** What a model says to a call, and how. */
export interface ModelScript {
  /** Its text, as it comes. */
  pieces?: string[]
  /** Null: the gateway does not say. Default: four letters a token. */
  usage?: ModelUsage | null
  /** In the gateway's own words. */
  end?: string
  /** After each piece. */
  pause_ms?: number
  /** The gateway waits for it after the pieces. */
  until?: Promise<unknown>
  /** What comes after the pieces in place of the end. `endless` repeats the last piece. */
  after?: "cut" | "silence" | "endless"
  /** An answer that is no stream. */
  status?: number
  headers?: Record<string, string>
  /** In place of an error of the gateway, or of a stream. */
  raw?: string
}

export interface ModelGatewayCall {
  method: string
  path: string
  headers: Record<string, string>
  body: Record<string, unknown>
  /** All that the model reads. */
  prompt: string
}

/** What is particular to gateways of one kind. */
export interface ModelDialect {
  kind: "openai" | "anthropic"
  base_path: string
  path: string
  /** Beside those of every kind. */
  headers?: Record<string, string>
  /** The JSON Schema of a body that it does not refuse. */
  body: object
  promptOf(body: Record<string, unknown>): string
  begin(usage: ModelUsage | null): string
  piece(text: string): string
  end(reason: string | undefined, usage: ModelUsage | null): string
  refusal(status: number, message: string): object
}

export const GATEWAY_KEY = "key-of-the-gateway"

export const somePrompt: Prompt = {
  version: "test-1",
  system: "You write.",
  user: "Grüße 🙂",
  schema: { name: "draft", schema: { type: "object" } },
  max_output_tokens: 100,
}

export const gatewayAt = (kind: Gateway["kind"], base_url: string): Gateway => ({
  ...{ kind, base_url, api_key: GATEWAY_KEY },
  ...{ model: "model-fast", tier: "fast" },
})

/** For schemas: an object with these members and no others. */
export const shape = (properties: Record<string, object>, optional: string[] = []) => ({
  type: "object",
  properties,
  required: Object.keys(properties).filter((name) => !optional.includes(name)),
  additionalProperties: false,
})
export const text = { type: "string", minLength: 1 }
export const count = { type: "integer", minimum: 1 }
export const just = (value: unknown) => ({ const: value })

/** The schema of a call, whose headers are these among others. */
function callShape({ base_path, path, headers, body }: ModelDialect) {
  const own = { "content-type": "application/json", authorization: `Bearer ${GATEWAY_KEY}` }
  const all = Object.entries({ ...own, ...headers }).map(([name, value]) => [name, just(value)])
  const some = { ...shape(Object.fromEntries(all)), additionalProperties: true }
  const properties = { method: just("POST"), path: just(base_path + path), headers: some, body }
  return { type: "object", properties }
}

/** What a gateway says to each call. */
export type ModelSays = (call: ModelGatewayCall, nth: number) => ModelScript

/**
 * A gateway on loopback that verifies what it is asked, and says what the script of the call says. It keeps
 * the calls, and what it was wrong with them, and counts the tokens of the answers that it gave to their end.
 */
export async function modelGateway(dialect: ModelDialect, script: ModelSays, port = 0) {
  const fits = new Ajv({ strict: false }).compile(callShape(dialect))
  const calls: ModelGatewayCall[] = []
  const problems: string[] = []
  const counted = { input_tokens: 0, output_tokens: 0 }
  const open = new Set<ServerResponse>()

  async function answer(request: IncomingMessage, response: ServerResponse) {
    open.add(response)
    response.on("close", () => open.delete(response))
    let text = ""
    for await (const piece of request) text += piece
    const body = JSON.parse(text) as Record<string, unknown>
    const { method = "", url: path = "" } = request
    const headers = request.headers as Record<string, string>
    const call = { method, path, headers, body, prompt: dialect.promptOf(body) }
    const nth = calls.push(call)
    const wrong = fits(call) ? undefined : JSON.stringify(fits.errors)
    if (wrong) problems.push(wrong)
    const said: ModelScript = wrong ? { status: 400, raw: wrong } : script(call, nth)
    const { pieces = [], status = 200, raw } = said
    const type = status === 200 ? "text/event-stream" : "application/json"
    response.writeHead(status, { "content-type": type, ...said.headers })
    if (raw !== undefined) return response.end(raw)
    if (status !== 200) return response.end(JSON.stringify(dialect.refusal(status, "no")))
    const counts = { input_tokens: tokens(call.prompt), output_tokens: tokens(pieces.join("")) }
    const { usage = counts } = said
    response.flushHeaders()
    // A gateway that is silent says nothing at all.
    if (said.after !== "silence" || pieces.length > 0) response.write(dialect.begin(usage))
    for (const piece of pieces) {
      response.write(dialect.piece(piece))
      if (said.pause_ms) await Bun.sleep(said.pause_ms)
    }
    await said.until
    if (said.after === "cut") return response.socket?.end() // what was said arrives
    if (said.after === "endless") return pour(response, dialect.piece(pieces.at(-1) ?? ""))
    if (said.after === "silence") return undefined
    counted.input_tokens += usage?.input_tokens ?? 0
    counted.output_tokens += usage?.output_tokens ?? 0
    return response.end(dialect.end(said.end, usage))
  }

  const server = createServer((request, response) => void answer(request, response))
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}${dialect.base_path}`
  const settings: Partial<Settings> = {
    "ai.gateway.kind": dialect.kind,
    "ai.gateway.base_url": url,
    "ai.gateway.api_key": GATEWAY_KEY,
    ...Object.fromEntries(AI_TIERS.map((tier) => [`ai.gateway.models.${tier}`, `model-${tier}`])),
  }
  return {
    url,
    /** For a server that asks this gateway. */
    settings,
    calls,
    problems,
    /** Of all answers that came to their end. */
    counted,
    /** Answers that are on their way. */
    open,
    async [Symbol.asyncDispose]() {
      for (const response of open) response.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

const tokens = (text: string) => Math.ceil(text.length / 4)

/** Waits for its reader, so that it holds no more than what is on its way. */
function pour(response: ServerResponse, piece: string) {
  const more = () => {
    while (!response.destroyed && response.write(piece));
  }
  response.on("drain", more)
  more()
}
