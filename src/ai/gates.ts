import { settings } from "../core/config"
import { ApiError, fail } from "../core/errors"
import type { Secrets } from "../core/secrets"
import type { Caller } from "../identity/caller"
import { throttles } from "../identity/tables"
import { featuresOf } from "../plans/plans"
import { Throttle } from "../sign-in/throttle"
import type { Store } from "../store/store"
import { type AiAction, quotaLimitOf, TIER_OF } from "./actions"
import type { AiTask, ModelUsage, Prompt } from "./ai-task"
import { costOf, type Reservation, reserve } from "./calls"
import { gatewayOf } from "./gateway"

export type GateParts = { store: Store; secrets: Secrets }

/**
 * The gates of contract 60, section 1, that need no gateway, in their order: 403 `feature_not_enabled`, 429
 * `ai_rate_limited`, 402 `ai_quota_exceeded`, 402 `ai_budget_exceeded`. What passes holds one of the quota and
 * its largest possible cost until `endCall`.
 */
export async function admit(
  parts: GateParts,
  caller: Caller,
  { action, prompt, tries = 1 }: AiTask,
): Promise<Reservation> {
  requireAllowed(caller, action)
  await countCall(parts, caller, action)
  const { account_id, project_id, project_settings } = caller
  // The model of another tier may stand in. It has its own price.
  const tier = gatewayOf(TIER_OF[action])?.tier ?? TIER_OF[action]
  const price = settings()[`ai.gateway.price_per_mtok.${tier}`]
  return reserve(parts.store, {
    ...{ account_id, project_id, action, price },
    limit: caller.limits[quotaLimitOf(action)],
    held_micro: tries * costOf(price, mostOf(prompt)),
    budget_usd: project_settings.ai.budget_usd,
  })
}

/** Throws 403 `forbidden` where a request names another project than the caller's. */
export function requireOwnProject({ project_id }: Caller, named: string | undefined): void {
  if (named === undefined || named === project_id) return
  fail("forbidden", "`project_id` must be the project of the caller.")
}

/** Throws 403 `feature_not_enabled` where the plan or the setting `ai` of the project excludes the action. */
export function requireAllowed(
  { kind, plan, project_role, project_settings }: Caller,
  action: AiAction,
) {
  const { enabled, allowed_roles, blocked_tiers } = project_settings.ai
  const refuse = (text: string, more: object = {}) => {
    throw new ApiError("feature_not_enabled", text, { feature: "ai", plan, ...more })
  }
  if (!featuresOf(plan).ai_authoring)
    refuse("AI authoring needs the plan starter or a larger one.", { required_plan: "starter" })
  if (!enabled) refuse("AI authoring is off in this project. Its setting ai.enabled turns it on.")
  const [required_role] = allowed_roles
  // A key has scopes in place of a role.
  if (kind === "console" && !(project_role && allowed_roles.includes(project_role))) {
    refuse(`AI authoring in this project needs the role ${required_role}.`, { required_role })
  }
  const tier = TIER_OF[action]
  if (!blocked_tiers.includes(tier)) return
  refuse(`This project blocks models of the tier ${tier}, which ${action} needs.`)
}

/** Throws 429 `ai_rate_limited`. Each person or key has a count for each action. */
function countCall({ store, secrets }: GateParts, { key_id, user_id }: Caller, action: AiAction) {
  const size = settings()["ai.calls_per_hour"]
  const bucket = { name: "ai", size, seconds: 3600, code: "ai_rate_limited" } as const
  const attempts = new Throttle(store, secrets, throttles)
  return attempts.consume([bucket, `${key_id ?? user_id}:${action}`])
}

/** What adapters add to a prompt: the names of roles, and a word on the form of the answer. */
const ADDED_TOKENS = 500

/** No token is shorter than one byte. */
function mostOf({ system, user, schema, max_output_tokens }: Prompt): ModelUsage {
  const bytes = Buffer.byteLength(system + user + JSON.stringify(schema))
  return { input_tokens: bytes + ADDED_TOKENS, output_tokens: max_output_tokens }
}
