import { ApiError } from "../core/errors"
import { log } from "../core/log"
import { currentPeriod, monotonic } from "../core/time"
import { JsonScan, parseScanned } from "../http/json"
import type { Caller } from "../identity/caller"
import { type AiAction, quotaLimitOf, TIER_OF } from "./actions"
import type { AiResult, AiTask, ModelUsage, VariablesFound } from "./ai-task"
import { UNLIMITED } from "./ai-usage"
import { type AiQuota, endCall, quotaOf, type Reservation } from "./calls"
import { admit, type GateParts } from "./gates"
import { callModel, gatewayOf } from "./gateway"

/** What a call tells while it runs, in the order of contract 60, section 3. */
export type AiFrame =
  | { event: "token"; data: { text: string } }
  | { event: "variables_validated"; data: VariablesFound }
  | { event: "complete"; data: Record<string, unknown> }

/** Nobody is there to read it. */
export const LEFT = new ApiError("service_unavailable", "The client closed the connection.")

/**
 * Lets the call through the gates, asks the model, and settles what the call held before it tells the result.
 * `signal` is aborted with what the call then fails with, or with `LEFT`. Throws what the gates refuse, what the
 * gateway fails with, and what is wrong with the result. Where the gateway fails, an analysis completes by its rules.
 */
export async function* runTask(
  parts: GateParts,
  caller: Caller,
  task: AiTask,
  signal: AbortSignal,
): AsyncGenerator<AiFrame, void> {
  const begun = monotonic()
  const { action, prompt, rules } = task
  const metadataOf = (quota: AiQuota, source: object) => ({
    ...{ action, tier: TIER_OF[action], prompt_version: prompt.version, ...source },
    latency_ms: Math.round(monotonic() - begun),
    quota: { ...quota, limit: quota.limit ?? UNLIMITED },
  })
  const progress: Progress = { stage: "waiting", model: null, spent: [] }
  let held: Reservation | undefined
  let ending: Promise<{ cost_usd: number; quota: AiQuota }> | undefined
  const end = (keeps_quota = progress.stage === "answering" || signal.reason === LEFT) => {
    const outcome = { usage: usageOf(progress), keeps_quota }
    ending ??= held ? endCall(parts, held, outcome) : refused(parts, caller, action)
    return ending
  }
  // Not only when the reader takes the next frame: it may never do so.
  const onStop = () => void end().catch((error) => log.error("an AI call stays open", { error }))
  try {
    held = await admit(parts, caller, task)
    signal.addEventListener("abort", onStop)
    const { complete, variables } = yield* ask(task, progress, signal)
    const { cost_usd, quota } = await end(true)
    if (variables) yield { event: "variables_validated", data: variables }
    const own = { source: "model", degraded: false, model: progress.model, cost_usd }
    const metadata = metadataOf(quota, { ...own, ...usageOf(progress) })
    yield { event: "complete", data: { ...complete, metadata } }
  } catch (thrown) {
    const error = signal.aborted ? signal.reason : thrown
    if (!held && !rules) throw error
    const { quota } = await end()
    const fails = error === LEFT || progress.stage === "answered" || !(error instanceof ApiError)
    if (!rules || fails) throw error
    const data = { ...rules, metadata: metadataOf(quota, BY_RULES) }
    if (error.status === 402 || error.code === "bedrock_throttled")
      throw new ApiError(error.code, error.message, { ...error.details, ...data })
    if (!held) throw error
    yield { event: "complete", data }
  } finally {
    signal.removeEventListener("abort", onStop)
    if (held) await end(true) // where nothing did before, the client left between two pieces
  }
}

/** Of a call that a gate refused. */
async function refused({ store }: GateParts, { account_id, limits }: Caller, action: AiAction) {
  const key = { account_id, period: currentPeriod(), action, limit: limits[quotaLimitOf(action)] }
  return { cost_usd: 0, quota: await quotaOf(store.read, key) }
}

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
  "This server has no AI gateway. Its operator sets ai.gateway.kind and ai.gateway.models.fast."

export const PARSE_FAILED = "parse_failed"

/** Many models put thoughts, words or a fence of Markdown around their object, though they are asked not to. */
function jsonIn(text: string): string {
  const answer = text.slice(text.lastIndexOf("</think>") + 1)
  const begin = answer.search(/\{\s*"/)
  const fence = answer.lastIndexOf("\n```") // no JSON has it
  const end = answer.lastIndexOf("}", fence > begin ? fence : undefined)
  return begin < 0 ? answer : answer.slice(begin, end + 1)
}

/** The JSON of an answer, within the limits of a request's body. Throws 502 `provider_error`, reason `parse_failed`. */
function parsed(text: string): unknown {
  try {
    const bytes = Buffer.from(jsonIn(text))
    new JsonScan().feed(bytes)
    return parseScanned([bytes])
  } catch {
    const details = { reason: PARSE_FAILED, raw_excerpt: text.slice(0, 500).toWellFormed() }
    const message = "The AI model did not answer with JSON. Try again."
    throw new ApiError("provider_error", message, details)
  }
}
