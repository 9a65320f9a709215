import { settings } from "../core/config"
import { deadline } from "../core/deadline"
import { ApiError } from "../core/errors"
import { type Fields, log } from "../core/log"
import { NetError, openStream, retryAfterSeconds } from "../core/net"
import { monotonic } from "../core/time"
import { eventData } from "../lib/server-sent-events"
import { objectIn } from "../lib/text"
import { AI_TIERS, type AiTier } from "./actions"
import type { ModelUsage, Prompt } from "./ai-task"
import type { ModelAdapter, ModelEndpoint, ModelRequest, Refused } from "./providers/adapter"
import { anthropic } from "./providers/anthropic"
import { openai } from "./providers/openai"

const adapters = { openai, anthropic }

export interface Gateway extends ModelEndpoint {
  kind: keyof typeof adapters
  /** The tier whose model is asked, and whose price counts. */
  tier: AiTier
}

/**
 * The gateway of the settings for calls of a tier. A tier without a model uses that of another tier.
 * Undefined where no gateway is configured, or no model.
 */
export function gatewayOf(wanted: AiTier): Gateway | undefined {
  const given = settings()
  const kind = given["ai.gateway.kind"]
  const tier = [wanted, ...AI_TIERS].find((one) => given[`ai.gateway.models.${one}`])
  const model = tier && given[`ai.gateway.models.${tier}`]
  if (!kind || !model) return undefined
  const base_url = given["ai.gateway.base_url"] ?? adapters[kind].default_base_url
  const api_key = given["ai.gateway.api_key"]
  return { kind, base_url, api_key, model, tier }
}

/** Tests shorten it. */
export const patience = { first_byte_ms: 30_000 }

const MOST_OUTPUT_BYTES = 262_144
const MOST_REASON = 100
const BYTES_A_TOKEN = 4
/** Where a gateway that throttles does not say how long. */
const RETRY_SECONDS = 10
const MINUTE_MS = 60_000

export interface ModelCall {
  /** Ends the call with 504 `timeout`: at the caller's time limit, and when nobody reads any more. */
  signal: AbortSignal
  /** Kept up to date while the call runs, for calls that do not come to their end. */
  spent?: ModelUsage
}

/**
 * Asks the model and yields its text as it comes. Returns what was used: by the gateway's numbers, or
 * estimated as four bytes a token. Before the first token one failure is repeated: no connection, no first
 * byte in 30 s, a status of 5xx, or a refused request, which then has less. Throws ApiError: 503
 * `bedrock_throttled`, 503 `service_unavailable` (no connection, or a refused key), 504 `timeout`, else
 * 502 `provider_error` with `details.reason`.
 */
export async function* callModel(
  gateway: Gateway,
  prompt: Prompt,
  { signal, spent = { input_tokens: 0, output_tokens: 0 } }: ModelCall,
): AsyncGenerator<string, ModelUsage> {
  const call = { signal, spent, has_begun: false }
  let failure = yield* attempt(gateway, prompt, "nothing", call)
  if (failure?.again && !call.has_begun) {
    const schema = `\nThe schema is ${JSON.stringify(prompt.schema.schema)}`
    const told = { ...prompt, system: prompt.system + (failure.again === "schema" ? schema : "") }
    failure = yield* attempt(gateway, told, failure.again, call)
  }
  if (failure) throw failure.error
  return spent
}

interface Failure {
  error: ApiError
  /** The call may be repeated, with this left out. */
  again?: Refused
}

async function* attempt(
  gateway: Gateway,
  prompt: Prompt,
  left_out: Refused,
  call: Required<ModelCall> & { has_begun: boolean },
): AsyncGenerator<string, Failure | undefined> {
  const adapter = adapters[gateway.kind]
  const late = new AbortController()
  const drop = deadline(patience.first_byte_ms, () => late.abort())
  const { spent } = call
  let has_answer = false
  let bytes = 0
  let end: string | undefined
  try {
    const stop = AbortSignal.any([call.signal, late.signal])
    const answer = await open(gateway, adapter.request(gateway, prompt, left_out), stop)
    has_answer = true
    if (answer.status !== 200) {
      const { value = "" } = await answer.body.next()
      await answer.body.return()
      return refusal(answer.status, answer.headers, Buffer.from(value).toString())
    }
    spent.input_tokens = estimate(Buffer.byteLength(prompt.system + prompt.user))
    spent.output_tokens = 0
    for await (const data of eventData(answer.body)) {
      const part = partOf(adapter, data)
      if (!part) continue
      drop()
      if (part.failed) return refusal(part.failed, answer.headers)
      bytes += Buffer.byteLength(part.text ?? "")
      spent.input_tokens = part.input_tokens ?? spent.input_tokens
      spent.output_tokens =
        part.output_tokens ?? (part.text ? estimate(bytes) : spent.output_tokens)
      if (bytes > MOST_OUTPUT_BYTES) return broken("too_large")
      if (part.text) {
        call.has_begun = true
        yield part.text
      }
      end = part.end ?? end
      if (!part.is_last) continue
      end ??= "stop"
      break
    }
  } catch (error) {
    if (call.signal.aborted) return { error: timeout() }
    return late.signal.aborted
      ? { error: timeout(), again: "nothing" }
      : failureOf(error, has_answer)
  } finally {
    drop()
  }
  if (end === undefined) return { ...broken("cut"), again: "nothing" }
  return end === "stop" || end === "length" ? undefined : broken(end.slice(0, MOST_REASON))
}

function open({ base_url }: Gateway, { url, headers, body }: ModelRequest, signal: AbortSignal) {
  const types = { accept: "text/event-stream", "content-type": "application/json" }
  // The operator's own word, so it may be a private one.
  const allow_private = [new URL(base_url).hostname]
  const request = { url, method: "POST", allow_private, headers: { ...types, ...headers } }
  return openStream({ ...request, body: JSON.stringify(body) }, signal)
}

function partOf(adapter: ModelAdapter, data: string): ReturnType<ModelAdapter["part"]> {
  if (data.startsWith("[DONE]")) return { is_last: true } // of chat completions, and no JSON
  const said = objectIn(data)
  return said ? adapter.part(said) : { failed: 502 }
}

const estimate = (bytes: number) => Math.ceil(bytes / BYTES_A_TOKEN)

/** What an answer of another status means. */
function refusal(status: number, headers: Headers, text = ""): Failure {
  if (status === 429 || status === 529) {
    const retry_after = Math.max(1, Math.ceil(retryAfterSeconds(headers) ?? RETRY_SECONDS))
    const words = "The AI gateway refuses more requests at the moment."
    return { error: new ApiError("bedrock_throttled", words, { retry_after }) }
  }
  warn("the AI gateway refused a call", { status })
  if (status === 401 || status === 403) return unavailable("refuses the key of this server")
  const failed = broken(`status_${status}`)
  if (status >= 500) return { ...failed, again: "nothing" }
  if (status !== 400 && status !== 422) return failed
  // Most often it is the schema, in words of many kinds.
  const named = /max_tokens|stream_options/.exec(text)?.[0] ?? "schema"
  return { ...failed, again: named as Refused }
}

function failureOf(error: unknown, has_answer: boolean): Failure {
  if (error instanceof RangeError) return broken("too_large")
  if (!(error instanceof NetError)) throw error
  warn("the connection to the AI gateway failed", { reason: error.message })
  return { ...(has_answer ? broken("cut") : unavailable("cannot be reached")), again: "nothing" }
}

const broken = (reason: string): Failure => ({
  error: new ApiError("provider_error", "The AI gateway did not answer as expected.", { reason }),
})

const unavailable = (what: string): Failure => ({
  error: new ApiError("service_unavailable", `The AI gateway ${what}.`),
})

const timeout = () => new ApiError("timeout", "The AI gateway took too long.")

let warned_at = Number.NEGATIVE_INFINITY

/** A gateway that fails does so for each call. One line a minute tells it. */
function warn(message: string, fields: Fields) {
  if (monotonic() - warned_at < MINUTE_MS) return
  warned_at = monotonic()
  log.warn(message, fields)
}
