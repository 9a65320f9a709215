import type { AnswerOf } from "../../src/client/client"
import { counted, number, percent } from "./cells"
import type { DataOf } from "./resource"
import { type Columns, count, fields, recordText, table, wide } from "./table"
import { cleanText, type Paint } from "./terminal"

type Suggestions = DataOf<"POST /v1/ai/subjects/suggest">
type Draft = DataOf<"POST /v1/ai/templates/draft">
type Rewritten = DataOf<"POST /v1/ai/templates/rewrite">
type Workflow = DataOf<"POST /v1/ai/workflows/generate">
type Analysis = DataOf<"POST /v1/ai/broadcasts/analyze">
/** Beside the payload, where a text has variables. */
type Found = Partial<Pick<AnswerOf<"POST /v1/ai/templates/draft">, "variables">>
type MonthOfAi = DataOf<"GET /v1/ai/usage">

/** Most amounts are below a cent. */
const usd = (amount: number): string => `$${amount.toFixed(amount < 1 ? 4 : 2)}`

/** A limit below 0 is none. */
export const limitText = (limit: number) => (limit < 0 ? "unlimited" : number(limit))

/** The end of each answer: the variables of its text, and what it took. */
function endText({ metadata, variables }: Pick<Draft, "metadata"> & Found, paint: Paint): string {
  const { source, model, input_tokens, output_tokens, cost_usd, quota } = metadata
  const tokens = `${number(input_tokens)} + ${number(output_tokens)} tokens`
  const by = source === "rules" ? "by rules alone" : `${model}, ${tokens}, ${usd(cost_usd)}`
  const cost = `${by}, ${number(quota.used)} of ${limitText(quota.limit)} this month`
  const corrected = variables?.corrected.map(({ from, to }) => `${from} → ${to}`)
  return paragraphs(recordText({ ...variables, corrected }, paint), paint.dim(cost))
}

const paragraphs = (...parts: string[]) => parts.filter((part) => part !== "").join("\n\n")

export const suggestionText = (answer: Suggestions, paint: Paint, width: number) =>
  paragraphs(table(answer.suggestions, suggestionColumns, width, paint), endText(answer, paint))

const suggestionColumns: Columns<Suggestions["suggestions"][number]> = {
  "": "rank",
  SUBJECT: wide(({ subject }) => subject, "last"),
  OPENS: ({ predicted_open_rate }) => percent(predicted_open_rate),
  WHY: wide(({ rationale, warnings }) => [rationale, ...warnings].join("; "), "first"),
}

export function draftText(draft: Draft & Found, paint: Paint): string {
  const { name, channel, variables: _, ...texts } = draft.template
  const written = Object.entries(texts).flatMap(([part, text]) =>
    text ? [`${paint.bold(part)}\n${cleanText(text)}`] : [],
  )
  const about = fields(Object.entries({ name, channel }), paint)
  return paragraphs(about, ...written, endText(draft, paint))
}

export const blockText = (answer: Rewritten & Found, paint: Paint) =>
  paragraphs(cleanText(answer.block.content), endText(answer, paint))

/** A workflow as the strict schema has it. */
interface WrittenWorkflow extends Record<string, unknown> {
  steps: { step_key: string; type: string; name: string; branch_path?: string | null }[]
}

export function workflowText(answer: Workflow & Found, paint: Paint, width: number): string {
  const { steps, ...about } = answer.workflow as WrittenWorkflow
  const rows = table(steps, stepColumns, width, paint)
  return paragraphs(recordText(about, paint), rows, endText(answer, paint))
}

const stepColumns: Columns<WrittenWorkflow["steps"][number]> = {
  STEP: "step_key",
  TYPE: "type",
  NAME: wide(({ name }) => name),
  IF: "branch_path",
}

const BRUSHES = { high: "red", medium: "yellow", low: "dim" } as const

/** The advice on a broadcast: what to do, and why. */
export function advisoryText(answer: Analysis, paint: Paint): string {
  const { advisory } = answer
  const { summary, recommended_action, deliverability_risks: risks } = advisory
  const notes = [...risks, ...advisory.audience_warnings, ...advisory.content_notes]
  const conflicts = advisory.frequency_conflicts.map(({ name: title, detail }) => {
    return { severity: "medium" as const, title, detail }
  })
  const found = [...notes, ...conflicts].map(({ severity, title, detail, ...more }) => {
    const fix = "fix" in more ? `\n  → ${more.fix}` : ""
    return `${paint[BRUSHES[severity]](severity)}  ${cleanText(`${title}\n  ${detail}${fix}`)}`
  })
  const times = advisory.send_time_suggestions.map(
    ({ suggested_at, reason }) => `${suggested_at}  ${cleanText(reason)}`,
  )
  const head = `${paint.bold(recommended_action.replaceAll("_", " "))}  ${cleanText(summary)}`
  return paragraphs([head, ...found, ...times].join("\n"), endText(answer, paint))
}

/** What a month cost so far, in one line. */
export function spentLine({ spend_usd, budget_usd, projected_usd }: MonthOfAi): string {
  const budget = budget_usd === null ? "" : ` of ${usd(budget_usd)}`
  return `${usd(spend_usd)}${budget} spent, ${usd(projected_usd)} expected for the month`
}

export const actionTable = ({ by_action }: MonthOfAi, paint: Paint, width: number): string =>
  table(by_action, actionColumns, width, paint)

const actionColumns: Columns<MonthOfAi["by_action"][number]> = {
  ACTION: "action",
  CALLS: count((action) => action.count),
  LIMIT: { cell: ({ limit }) => limitText(limit), right: true },
  SPENT: { cell: ({ spend_usd }) => usd(spend_usd), right: true },
}

export function spendingText(month: MonthOfAi, paint: Paint, width: number): string {
  const tiers = month.by_tier.map(
    (one) => [one.tier, `${counted(one.count, "call")}, ${usd(one.spend_usd)}`] as const,
  )
  const about = fields([["spending", spentLine(month)], ...tiers], paint)
  return paragraphs(about, actionTable(month, paint, width))
}
