import { ApiError } from "../core/errors"
import { log } from "../core/log"
import type { Secrets } from "../core/secrets"
import { currentPeriod, monotonic } from "../core/time"
import { JsonScan, parseScanned } from "../http/json"
import type { Caller } from "../identity/caller"
import type { Store } from "../store/store"
import { quotaLimitOf, TIER_OF } from "./actions"
import type { AiResult, AiTask, ModelUsage, VariablesFound } from "./ai-task"
import { UNLIMITED } from "./ai-usage"
import { type AiQuota, endCall, quotaOf, type Reservation } from "./calls"
import { admit } from "./gates"
import { callModel, gatewayOf } from "./gateway"

/** What a call tells while it runs, in the order of contract 60, section 3. */
export type AiFrame =
  | { event: "token"; data: { text: string } }
  | { event: "variables_validated"; data: VariablesFound }
  | { event: "complete"; data: Record<string, unknown> }

export interface EngineParts {
  store: Store
  secrets: Secrets
}

/** Nobody is there to read it. */
export const LEFT = new ApiError("service_unavailable", "The client closed the connection.")

/**
 * Lets the call through the gates, asks the model, and settles what the call held before it tells the result.
 * `signal` is aborted with what the call then fails with, or with `LEFT`. Throws what the gates refuse, what the
 * gateway fails with, and what is wrong with the result. Where the gateway fails, an analysis completes by its rules.
 */
export async function* runTask(
  parts: EngineParts,
  caller: Caller,
  task: AiTask,
  signal: AbortSignal,
): AsyncGenerator<AiFrame, void> {
  const begun = monotonic()
  const metadataOf = (quota: AiQuota, source: object) => ({
    ...{ action: task.action, tier: TIER_OF[task.action], prompt_version: task.prompt.version },
    ...{ latency_ms: Math.round(monotonic() - begun), ...source },
    quota: { ...quota, limit: quota.limit ?? UNLIMITED },
  })
  const progress: Progress = { stage: "waiting", model: null, spent: [] }
  const held = await admitted(parts, caller, task, metadataOf)
  let ending: ReturnType<typeof endCall> | undefined
  const end = (keeps_quota = progress.stage === "answering" || signal.reason === LEFT) => {
    ending ??= endCall(parts, held, { usage: usageOf(progress), keeps_quota })
    return ending
  }
  // Not only when the reader takes the next frame: it may never do so.
  const onStop = () => void end().catch((error) => log.error("an AI call stays open", { error }))
  signal.addEventListener("abort", onStop)
  try {
    const { complete, variables } = yield* ask(task, progress, signal)
    const { cost_usd, quota } = await end(true)
    if (variables) yield { event: "variables_validated", data: variables }
    const own = { source: "model", degraded: false, model: progress.model, cost_usd }
    const metadata = metadataOf(quota, { ...own, ...usageOf(progress) })
    yield { event: "complete", data: { ...complete, metadata } }
  } catch (thrown) {
    const error = signal.aborted ? signal.reason : thrown
    const { quota } = await end()
    const fails = error === LEFT || progress.stage === "answered" || !(error instanceof ApiError)
    if (!task.rules || fails) throw error
    const data = { ...task.rules, metadata: metadataOf(quota, BY_RULES) }
    if (error.code === "bedrock_throttled") throw advised(error, data)
    yield { event: "complete", data }
  } finally {
    signal.removeEventListener("abort", onStop)
    await end(true) // where nothing did before, the client left between two pieces
  }
}

/** The refusal of a quota or a budget tells what the rules say all the same. */
async function admitted(
  parts: EngineParts,
  caller: Caller,
  task: AiTask,
  metadataOf: (quota: AiQuota, source: object) => object,
): Promise<Reservation> {
  try {
    return await admit(parts, caller, task)
  } catch (error) {
    if (!task.rules || !(error instanceof ApiError) || error.status !== 402) throw error
    const limit = caller.limits[quotaLimitOf(task.action)]
    const { account_id } = caller
    const key = { account_id, period: currentPeriod(), action: task.action, limit }
    const metadata = metadataOf(await quotaOf(parts.store.read, key), BY_RULES)
    throw advised(error, { ...task.rules, metadata })
  }
}

const advised = ({ code, message, details }: ApiError, advice: object) =>
  new ApiError(code, message, { ...details, ...advice })

const BY_RULES = {
  ...{ source: "rules", degraded: true, model: null },
  ...{ input_tokens: 0, output_tokens: 0, cost_usd: 0 },
}

interface Progress {
  /** What fails while the model is `answering` has used the quota; once it has `answered`, the result is rejected. */
  stage: "waiting" | "answering" | "answered"
  model: string | null
  /** Of each question, kept up to date while the model answers. */
  spent: ModelUsage[]
}

function usageOf({ spent }: Progress): ModelUsage {
  const total = (name: keyof ModelUsage) => spent.reduce((sum, one) => sum + one[name], 0)
  return { input_tokens: total("input_tokens"), output_tokens: total("output_tokens") }
}

/** Tells the pieces of the answer, and returns what was read from it. */
async function* ask(
  task: AiTask,
  progress: Progress,
  signal: AbortSignal,
): AsyncGenerator<AiFrame, AiResult> {
  const gateway = gatewayOf(TIER_OF[task.action])
  if (!gateway) throw new ApiError("service_unavailable", NO_GATEWAY, { reason: "gateway" })
  progress.model = gateway.model
  for (let left = task.tries ?? 1; ; left--) {
    const spent = { input_tokens: 0, output_tokens: 0 }
    progress.spent.push(spent)
    progress.stage = "waiting"
    let text = ""
    for await (const piece of callModel(gateway, task.prompt, { signal, spent })) {
      progress.stage = "answering"
      text += piece
      yield { event: "token", data: { text: piece } }
    }
    progress.stage = "answered"
    try {
      return await task.read(parsed(text))
    } catch (error) {
      if (left <= 1 || !(error instanceof ApiError)) throw error
    }
  }
}

const NO_GATEWAY =
  "This server has no AI gateway. Its operator names one with the setting ai.gateway.kind."

export const PARSE_FAILED = "parse_failed"

/** The JSON of an answer, within the limits of a request's body. Throws 502 `provider_error`, reason `parse_failed`. */
function parsed(text: string): unknown {
  try {
    const bytes = Buffer.from(unfenced(text))
    new JsonScan().feed(bytes)
    return parseScanned([bytes])
  } catch {
    const details = { reason: PARSE_FAILED, raw_excerpt: text.slice(0, 500).toWellFormed() }
    throw new ApiError(
      "provider_error",
      "The AI model did not answer with JSON. Try again.",
      details,
    )
  }
}

/** Many models put JSON between fences of Markdown, though they are asked not to. */
function unfenced(text: string): string {
  const trimmed = text.trim()
  const is_fenced = trimmed.startsWith(FENCE) && trimmed.endsWith(FENCE)
  return is_fenced ? trimmed.slice(0, -FENCE.length).replace(/^```(?:json)?/i, "") : trimmed
}

const FENCE = "```"
