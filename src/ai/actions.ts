import type { AiTier } from "../core/config-ai"
import type { LimitName } from "../core/config-plans"

export { AI_TIERS, type AiTier } from "../core/config-ai"

/** What the model is asked to do, and of which tier it is. Each action has a monthly quota of its own. */
export const TIER_OF = {
  suggest_subjects: "fast",
  draft_template: "standard",
  rewrite_template: "fast",
  generate_workflow: "deep",
  analyze_broadcast: "deep",
} as const satisfies Record<string, AiTier>

export type AiAction = keyof typeof TIER_OF
export const AI_ACTIONS = Object.keys(TIER_OF) as AiAction[]

/** The limit of the plan that is an action's monthly quota. */
export const quotaLimitOf = (action: AiAction): LimitName => `ai_${action}_per_month`
