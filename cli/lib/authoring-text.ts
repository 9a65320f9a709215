import { counted, number, percent } from "./cells"
import type { DataOf } from "./resource"
import { type Columns, count, fields, recordText, table, wide } from "./table"
import { cleanText, type Paint } from "./terminal"

type Suggestions = DataOf<"POST /v1/ai/subjects/suggest">
type Draft = DataOf<"POST /v1/ai/templates/draft">
type Rewritten = DataOf<"POST /v1/ai/templates/rewrite">
type Generated = DataOf<"POST /v1/ai/workflows/generate">
type Analysis = DataOf<"POST /v1/ai/broadcasts/analyze">
type Entitlement = DataOf<"GET /v1/ai/entitlement">
type AuthoringUsage = DataOf<"GET /v1/ai/usage">

/** Small amounts are the usual ones. */
const usd = (amount: number | null): string =>
  amount === null ? "" : `$${amount.toFixed(amount < 1 ? 4 : 2)}`

/** A limit below 0 is none. */
const limitText = (limit: number | null): string =>
  limit === null || limit < 0 ? "unlimited" : number(limit)

/** What the answer took: model, tokens, money and quota. */
export function costText({ metadata }: Pick<Draft, "metadata">, paint: Paint): string {
  const { source, model, input_tokens, output_tokens, cost_usd, quota } = metadata
  const by =
    source === "rules"
      ? ["by rules alone, without a model"]
      : [model, `${number(input_tokens)} + ${number(output_tokens)} tokens`, usd(cost_usd)]
  const left = `${number(quota.used)} of ${limitText(quota.limit)} this month`
  return paint.dim([...by, left].join(", "))
}

/** The variables that a text uses, those that were corrected, and those that nobody knows. */
function variableText({ variables }: Pick<Draft, "variables">, paint: Paint): string[] {
  if (variables === undefined) return []
  const { detected, corrected, unknown } = variables
  const changed = corrected.map(({ from, to }) => `${from} → ${to}`)
  const lines = fields(
    [
      ["variables", detected],
      ["corrected", changed, paint.yellow],
      ["unknown", unknown, paint.yellow],
    ],
    paint,
  )
  return lines === "" ? [] : [lines]
}

export const suggestionText = ({ suggestions }: Suggestions, paint: Paint, width: number) =>
  table(suggestions, suggestionColumns, width, paint)

const suggestionColumns: Columns<Suggestions["suggestions"][number]> = {
  "": ({ rank }) => String(rank),
  SUBJECT: wide(({ subject }) => subject, "last"),
  OPENS: { cell: ({ predicted_open_rate: rate }) => percent(rate), right: true },
  WHY: wide(({ rationale, warnings }) => [rationale, ...warnings].join("; "), "first"),
}

export function draftText(draft: Draft, paint: Paint): string {
  const { name, channel, subject, html, text, title, body } = draft.template
  const parts = Object.entries({ subject, title, body, html, text }).flatMap(([part, written]) =>
    written ? [`${paint.bold(part)}\n${cleanText(written)}`] : [],
  )
  return [
    fields(Object.entries({ name, channel }), paint),
    ...parts,
    ...variableText(draft, paint),
  ].join("\n\n")
}

export const rewrittenText = (rewritten: Rewritten, paint: Paint): string =>
  [cleanText(rewritten.block.content), ...variableText(rewritten, paint)].join("\n\n")

export function generatedText(generated: Generated, paint: Paint, width: number): string {
  const { steps, ...workflow } = generated.workflow
  const about = recordText(workflow, paint)
  const rows = table(steps, stepColumns, width, paint)
  return [about, rows, ...variableText(generated, paint)].join("\n\n")
}

const stepColumns: Columns<Generated["workflow"]["steps"][number]> = {
  STEP: "step_key",
  TYPE: "type",
  NAME: wide(({ name }) => name),
  UNDER: ({ parent_step_key: parent, branch_path: path }) => (parent ? `${parent}: ${path}` : ""),
}

const MARKS = { high: "red", medium: "yellow", low: "dim" } as const

/** The advice on a broadcast: what to do, and why. */
export function advisoryText({ advisory }: Pick<Analysis, "advisory">, paint: Paint): string {
  const { summary, recommended_action: action, send_time_suggestions: times } = advisory
  const found = [
    ...advisory.deliverability_risks,
    ...advisory.audience_warnings,
    ...advisory.content_notes,
  ].map((note) => {
    const fix = "fix" in note && note.fix ? `\n  → ${cleanText(`${note.fix}`)}` : ""
    const title = `${paint[MARKS[note.severity]](note.severity)}  ${cleanText(note.title)}`
    return `${title}\n  ${cleanText(note.detail)}${fix}`
  })
  const conflicts = advisory.frequency_conflicts.map(
    ({ name, detail }) => `${paint.yellow("close")}  ${cleanText(name)}\n  ${cleanText(detail)}`,
  )
  const moments = times.map(({ suggested_at, reason }) => `${suggested_at}  ${cleanText(reason)}`)
  const brush = action === "send" ? paint.green : paint.yellow
  const head = `${brush(action.replaceAll("_", " "))}  ${cleanText(summary)}`
  return [head, ...found, ...conflicts, ...moments].join("\n")
}

export const entitlementText = ({ quotas, used, ...rest }: Entitlement, paint: Paint): string =>
  recordText(rest, paint, {
    ...{ project_id: null, required_plan: rest.enabled ? null : rest.required_plan },
    ...Object.fromEntries(
      Object.entries(quotas).map(([action, limit]) => [
        action,
        `${number(used[action as keyof typeof used])} of ${limitText(limit)}`,
      ]),
    ),
  })

/** What a month cost so far, in one line. */
export function spentLine({ spend_usd, budget_usd, projected_usd }: AuthoringUsage): string {
  const budget = budget_usd === null ? "" : ` of ${usd(budget_usd)}`
  return `${usd(spend_usd)}${budget} spent, ${usd(projected_usd)} expected for the month`
}

export const actionTable = ({ by_action }: AuthoringUsage, paint: Paint, width: number): string =>
  table(by_action, actionColumns, width, paint)

export function spendingText(usage: AuthoringUsage, paint: Paint, width: number): string {
  const tiers = usage.by_tier.filter((tier) => tier.count > 0)
  const by_tier = tiers.map(({ tier, count: calls, spend_usd }) => {
    return [tier, `${counted(calls, "call")}, ${usd(spend_usd)}`] as const
  })
  const month = usage.period.start.slice(0, "2026-11".length)
  const about = fields([["month", month], ["spending", spentLine(usage)], ...by_tier], paint)
  return [about, actionTable(usage, paint, width)].join("\n\n")
}

const actionColumns: Columns<AuthoringUsage["by_action"][number]> = {
  ACTION: "action",
  CALLS: count(({ count: calls }) => calls),
  LIMIT: { cell: ({ limit }) => limitText(limit), right: true },
  SPENT: { cell: ({ spend_usd }) => usd(spend_usd), right: true },
}
