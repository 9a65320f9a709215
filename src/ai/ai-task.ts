import type { AiAction } from "./actions"

/** What a model is asked. The texts of people are fenced as data in `user`. */
export interface Prompt {
  /** Of the fixed text: another text has another version. */
  version: string
  system: string
  user: string
  /** The JSON Schema of the answer, for gateways that can hold a model to it. */
  schema: { name: string; schema: object }
  max_output_tokens: number
}

/** The variables of a text that a model wrote, beside those that the project knows. */
export interface VariablesFound {
  detected: string[]
  corrected: { from: string; to: string }[]
  unknown: string[]
}

export interface AiResult {
  /** What the caller gets beside `metadata`, such as `{template}`. */
  complete: Record<string, unknown>
  variables?: VariablesFound
}

/** One call: what the model is asked, and how its answer becomes a result. */
export interface AiTask {
  action: AiAction
  prompt: Prompt
  /**
   * Gets the JSON that the model wrote. Throws ApiError where it is no result: `ai_workflow_invalid`,
   * `ai_advisory_invalid`, or `provider_error` with `details.reason`.
   */
  read(output: unknown): Promise<AiResult>
  /** How often the model is asked while `read` throws. Default: once. */
  tries?: number
  /** The result without a model. Only an analysis has one. */
  rules?: Record<string, unknown>
}

export interface ModelUsage {
  input_tokens: number
  output_tokens: number
}
