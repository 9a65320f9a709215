import type { AiTier } from "../core/config-ai"
import type { LimitName } from "../core/config-plans"

export { AI_TIERS, type AiTier } from "../core/config-ai"

/** What the model is asked to do. Each action has a monthly quota of its own. */
export const AI_ACTIONS = [
  "suggest_subjects",
  "draft_template",
  "rewrite_template",
  "generate_workflow",
  "analyze_broadcast",
] as const
export type AiAction = (typeof AI_ACTIONS)[number]

export const TIER_OF: Record<AiAction, AiTier> = {
  suggest_subjects: "fast",
  draft_template: "standard",
  rewrite_template: "fast",
  generate_workflow: "deep",
  analyze_broadcast: "deep",
}

/** The limit of the plan that is an action's monthly quota. */
export const quotaLimitOf = (action: AiAction): LimitName => `ai_${action}_per_month`
