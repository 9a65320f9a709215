import { type Static, type TProperties, Type as t } from "@sinclair/typebox"
import { fail, Problems } from "../../core/errors"
import { isoFrom, millisFrom } from "../../core/time"
import { closedObject, oneOf, orNull } from "../../http/field-schemas"
import { check } from "../../http/validate"
import { EXAMPLE_ID, EXAMPLE_TIME } from "../../lib/record-fields"

/** The later ones are more careful. */
const ACTIONS = ["send", "send_with_caution", "delay", "revise_before_send"] as const

/** Of one list. */
const MOST_FINDINGS = 50
export const MOST_SUMMARY = 600

const said = (maxLength: number, example: string) => t.String({ maxLength, examples: [example] })
const title = said(200, "The From domain is not verified")
const detail = said(2_000, "The project may not send from acme.example.")
const DAY = "\\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\\d|3[01])"
const TIME = `^${DAY}T([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(\\.\\d{3})?Z$`
const time = t.String({ pattern: TIME, examples: [EXAMPLE_TIME] })
const UUID = "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"
const broadcast_id = orNull(t.String({ pattern: UUID, examples: [EXAMPLE_ID] }))
const overlap_percent = t.Number({ minimum: 0, maximum: 100, examples: [80] })
const finding = { severity: oneOf("high", "medium", "low"), title, detail }
const conflict = { broadcast_id, name: title, sent_at: time, overlap_percent, detail }
const listOf = <Fields extends TProperties>(fields: Fields) =>
  t.Array(closedObject(fields), { maxItems: MOST_FINDINGS })

const LISTS = {
  deliverability_risks: listOf({ ...finding, fix: detail }),
  frequency_conflicts: listOf(conflict),
  audience_warnings: listOf({ ...finding, affected: t.Integer({ minimum: 0, examples: [120] }) }),
  send_time_suggestions: listOf({ suggested_at: time, reason: detail }),
  content_notes: listOf(finding),
}
const summary = said(MOST_SUMMARY, "Verify the From domain.")
const fields = { summary, recommended_action: oneOf(...ACTIONS), ...LISTS }

/** Advice about a broadcast (contract 60, section 4). It never blocks a send. */
export const AdvisorySchema = closedObject(fields, { title: "Advisory" })

export type Advisory = Static<typeof AdvisorySchema>
/** What a model is asked for. */
export const AdviceAnswer = closedObject({ advisory: AdvisorySchema })

/** The advisory that a model wrote. Throws 502 `ai_advisory_invalid` with the path of each violation. */
export function readAdvisory(output: unknown): Advisory {
  const problems = new Problems()
  check(AdviceAnswer, output, problems)
  if (!problems.any) return (output as Static<typeof AdviceAnswer>).advisory
  const message = "The model gave advice that breaks the schema. Ask again."
  return fail("ai_advisory_invalid", message, { fields: problems.list })
}

export type Findings = Omit<Advisory, "summary" | "recommended_action">

/** Each list with what the parts have of it, in their order. */
export const joined = (parts: Partial<Findings>[]): Findings =>
  Object.fromEntries(
    Object.keys(LISTS).map((name) => {
      const all = parts.flatMap((part): object[] => part[name as keyof Findings] ?? [])
      return [name, all.slice(0, MOST_FINDINGS)]
    }),
  ) as Findings

/** The rules' findings come first, and the more careful recommendation holds. */
export function merged(rules: Advisory, model: Advisory): Advisory {
  const cautionOf = ({ recommended_action }: Advisory) => ACTIONS.indexOf(recommended_action)
  const { recommended_action } = cautionOf(rules) > cautionOf(model) ? rules : model
  const { summary, ...lists }: Advisory = JSON.parse(JSON.stringify(model), inFull)
  return { summary, recommended_action, ...joined([rules, lists]) }
}

/** A model knows no broadcast, and often leaves out milliseconds. */
const inFull = (name: string, value: string) =>
  name === "broadcast_id" ? null : /_at$/.test(name) ? isoFrom(millisFrom(value)) : value
