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
import { callModel, type Gateway, gatewayOf } from "./gateway"

/** What a call tells while it runs, in the order of contract 60, section 3. */
export type AiFrame =
  | { event: "token"; data: { text: string } }
  | { event: "variables_validated"; data: VariablesFound }
  | { event: "complete"; data: Record<string, unknown> }

export interface EngineParts {
  store: Store
  secrets: Secrets
}

interface Running {
  caller: Caller
  /** Aborted with what the call then fails with; with `LEFT` when the client is gone. */
  signal: AbortSignal
}

/** Nobody is there to read it. */
export const LEFT = new ApiError("service_unavailable", "The client closed the connection.")

/**
 * Lets the call through the gates, asks the model, and settles what the call held before it tells the result.
 * Throws what the gates refuse, what the gateway fails with, and what is wrong with the result. An analysis
 * completes by its rules where the gateway fails.
 */
export async function* runTask(
  parts: EngineParts,
  running: Running,
  task: AiTask,
): AsyncGenerator<AiFrame, void> {
  const { caller, signal } = running
  const begun = monotonic()
  const held = await admitted(parts, caller, task)
  const asking = new Asking(task)
  let ending: ReturnType<typeof endCall> | undefined
  const end = (keeps_quota = asking.stage === "answering" || signal.reason === LEFT) => {
    ending ??= endCall(parts, held, { usage: asking.usage, keeps_quota })
    return ending
  }
  // Not only when the reader takes the next frame: it may never do so.
  const onStop = () => void end().catch((error) => log.error("an AI call stays open", { error }))
  signal.addEventListener("abort", onStop)
  try {
    const { complete, variables } = yield* asking.ask(signal)
    const { cost_usd, quota } = await end(true)
    if (variables) yield { event: "variables_validated", data: variables }
    const { model, usage } = asking
    const own = { source: "model", degraded: false, model, ...usage, cost_usd }
    yield completed(complete, { ...described(task, quota, begun), ...own })
  } catch (thrown) {
    const error = signal.aborted ? signal.reason : thrown
    const { quota } = await end()
    const fails = error === LEFT || asking.stage === "answered" || !(error instanceof ApiError)
    if (!task.rules || fails) throw error
    const metadata = { ...described(task, quota, begun), ...BY_RULES }
    if (error.code === "bedrock_throttled") throw advised(error, task.rules, metadata)
    yield completed(task.rules, metadata)
  } finally {
    signal.removeEventListener("abort", onStop)
    await end(true) // where nothing did before, the client left between two pieces
  }
}

/** The refusal of a quota or a budget tells what the rules say all the same. */
async function admitted(parts: EngineParts, caller: Caller, task: AiTask): Promise<Reservation> {
  const begun = monotonic()
  try {
    return await admit(parts, caller, task)
  } catch (error) {
    if (!task.rules || !(error instanceof ApiError) || error.status !== 402) throw error
    const { action } = task
    const limit = caller.limits[quotaLimitOf(action)]
    const key = { account_id: caller.account_id, period: currentPeriod(), action, limit }
    const quota = await quotaOf(parts.store.read, key)
    throw advised(error, task.rules, { ...described(task, quota, begun), ...BY_RULES })
  }
}

const advised = ({ code, message, details }: ApiError, rules: object, metadata: object) =>
  new ApiError(code, message, { ...details, ...rules, metadata })

const completed = (complete: object, metadata: object): AiFrame => ({
  event: "complete",
  data: { ...complete, metadata },
})

/** What the metadata of every answer has. */
const described = ({ action, prompt }: AiTask, quota: AiQuota, begun: number) => ({
  action,
  tier: TIER_OF[action],
  prompt_version: prompt.version,
  latency_ms: Math.round(monotonic() - begun),
  quota: { ...quota, limit: quota.limit ?? UNLIMITED },
})

const BY_RULES = {
  ...{ source: "rules", degraded: true, model: null },
  ...{ input_tokens: 0, output_tokens: 0, cost_usd: 0 },
}

/** The questions of one call to the model, and how far they are. */
class Asking {
  readonly #task: AiTask
  #gateway: Gateway | undefined
  #text = ""
  /** Of each question, kept up to date while the model answers. */
  readonly #spent: ModelUsage[] = []
  /** What fails while the model is `answering` has used the quota; once it has `answered`, the result is rejected. */
  stage: "waiting" | "answering" | "answered" = "waiting"

  constructor(task: AiTask) {
    this.#task = task
  }

  get model(): string | null {
    return this.#gateway?.model ?? null
  }

  /** What the model has read and written so far, also of a question that was left. */
  get usage(): ModelUsage {
    const total = (name: keyof ModelUsage) => this.#spent.reduce((sum, one) => sum + one[name], 0)
    return { input_tokens: total("input_tokens"), output_tokens: total("output_tokens") }
  }

  /** Tells the pieces of the answer, and returns what was read from it. */
  async *ask(signal: AbortSignal): AsyncGenerator<AiFrame, AiResult> {
    this.#gateway = gatewayOf(TIER_OF[this.#task.action])
    if (!this.#gateway) throw new ApiError("service_unavailable", NO_GATEWAY, { reason: "gateway" })
    for (let left = this.#task.tries ?? 1; ; ) {
      yield* this.#answer(this.#gateway, signal)
      left--
      try {
        return await this.#task.read(parsed(this.#text))
      } catch (error) {
        if (left === 0 || !(error instanceof ApiError)) throw error
      }
    }
  }

  async *#answer(gateway: Gateway, signal: AbortSignal): AsyncGenerator<AiFrame, void> {
    this.stage = "waiting"
    this.#text = ""
    const spent = { input_tokens: 0, output_tokens: 0 }
    this.#spent.push(spent)
    for await (const text of callModel(gateway, this.#task.prompt, { signal, spent })) {
      this.stage = "answering"
      this.#text += text
      yield { event: "token", data: { text } }
    }
    this.stage = "answered"
  }
}

const NO_GATEWAY =
  "This server has no AI gateway. Its operator names one with the setting ai.gateway.kind."

const MOST_EXCERPT = 500

export const PARSE_FAILED = "parse_failed"

/** The JSON of an answer, within the limits of a request's body. Throws 502 `provider_error`, reason `parse_failed`. */
function parsed(text: string): unknown {
  try {
    const bytes = Buffer.from(unfenced(text))
    new JsonScan().feed(bytes)
    return parseScanned([bytes])
  } catch {
    const raw_excerpt = text.slice(0, MOST_EXCERPT).toWellFormed()
    throw new ApiError("provider_error", "The AI model did not answer with JSON. Try again.", {
      reason: PARSE_FAILED,
      raw_excerpt,
    })
  }
}

/** Many models put JSON between fences of Markdown, though they are asked not to. */
function unfenced(text: string): string {
  const trimmed = text.trim()
  const is_fenced = trimmed.startsWith(FENCE) && trimmed.endsWith(FENCE)
  return is_fenced ? trimmed.slice(0, -FENCE.length).replace(/^```(?:json)?/i, "") : trimmed
}

const FENCE = "```"
