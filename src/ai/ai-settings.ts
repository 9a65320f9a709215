import { Type as t } from "@sinclair/typebox"
import { AI_TIERS } from "../core/config-ai"
import { oneOf, orNull } from "../http/field-schemas"
import { settingField, settingGroup } from "../http/setting-fields"
import { type Caller, PROJECT_DEFAULTS } from "../identity/caller"
import type { AiSettings, ProjectRole } from "../identity/tables"
import { flag, rarely, word } from "../lib/record-fields"
import { upgradeRequired } from "../plans/plans"

const DEFAULTS = PROJECT_DEFAULTS.ai

/** A viewer lacks the scope of AI authoring, so the role is no choice. */
const ROLES: ProjectRole[] = ["admin", "developer"]

const MOST_DOLLARS = 1_000_000
const dollars = t.Number({ description: "US dollars that the project may spend in a month." })

/** A list of some of the words. Null is the default. */
const wordList = <Word extends string>(
  words: readonly Word[],
  { minItems, null_is, description }: { minItems: number; null_is: Word[]; description: string },
) => {
  const maxItems = words.length
  return settingField<Word[]>({
    answer: t.Array(word(words), { description, examples: [null_is] }),
    patch: orNull(t.Array(oneOf(...words), { minItems, maxItems, description })),
    keep: (given: Word[]) => [...new Set(given)],
    null_is,
    hint: `The value must be a list. It may have these words: ${words.join(", ")}. It needs at least ${minItems}.`,
  })
}

export const ai = settingGroup<AiSettings>(
  {
    enabled: settingField<boolean>({
      answer: flag(true, "Whether the project may use AI authoring."),
      patch: orNull(t.Boolean()),
      null_is: DEFAULTS.enabled,
      hint: "The value must be true, false or null.",
    }),
    budget_usd: settingField<number | null>({
      answer: rarely(dollars),
      patch: orNull(t.Number({ minimum: 0, maximum: MOST_DOLLARS })),
      hint: `The value must be US dollars from 0 to ${MOST_DOLLARS}, or null.`,
    }),
    allowed_roles: wordList(ROLES, {
      minItems: 1,
      null_is: DEFAULTS.allowed_roles,
      description: "The roles of people that may use it. An API key needs no role.",
    }),
    blocked_tiers: wordList(AI_TIERS, {
      minItems: 0,
      null_is: DEFAULTS.blocked_tiers,
      description: "The tiers of models that the project does not use.",
    }),
  },
  {
    description:
      "What the project may use of AI authoring. A change needs the plan pro or a larger one.",
  },
)

/** Throws 403 `plan_upgrade_required` below the plan pro, which can restore the defaults alone. */
export function requireAiOverrides({ plan }: Caller): void {
  if (plan === "free" || plan === "starter") throw upgradeRequired("ai", plan, "pro")
}
