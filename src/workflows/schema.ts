import { type Static, type TObject, type TSchema, Type as t } from "@sinclair/typebox"
import { Problems } from "../core/errors"
import { closedObject, nameText, orNull } from "../http/field-schemas"
import { check, isObject } from "../http/validate"
import { NO_NUL } from "../inbox/note-fields"
import { PRIORITY_WORDS } from "../inbox/tables"
import { parseRule, type Rule } from "../lib/filter-rule"
import { word } from "../lib/record-fields"
import { CATEGORY_SLUG } from "../lib/text"
import { SOURCE_BYTES } from "../templates/limits"

/* The strict schema of workflows (contract 44, section 2). People and models write them. */

const MOST_STEPS = 50

const { Optional: optional } = t
/** Fields of any name. */
const fieldsOf = <Value>(additionalProperties: TSchema | true, more: object = {}) =>
  t.Unsafe<Record<string, Value>>(t.Object({}, { additionalProperties, ...more }))

const DEFINITION = "x-definition"
/** What may hold others of its kind: the published schema refers to a definition, and functions below check it. */
const rule = t.Unsafe<Rule>(fieldsOf(true, { [DEFINITION]: "rule" }))
const payload = fieldsOf(true, { [DEFINITION]: "payload" })

const scalar = t.Union([t.String(), t.Number(), t.Boolean(), t.Null()])
const dottedPath = t.String({ pattern: "^[^.]+(\\.[^.]+)*$", maxLength: 256 })
const comparison = (words: string[], value: TSchema) =>
  closedObject({ field: dottedPath, op: word(words), value })

/** As `parseRule` reads rules. That also counts levels and comparisons. */
const RuleForm = t.Union([
  closedObject({ all: t.Array(rule, { minItems: 1 }) }),
  closedObject({ any: t.Array(rule, { minItems: 1 }) }),
  closedObject({ not: rule }),
  comparison(["eq", "ne", "contains"], scalar),
  comparison(["gt", "gte", "lt", "lte"], t.Union([t.String(), t.Number()])),
  comparison(["in", "nin"], t.Array(scalar, { minItems: 1, maxItems: 100 })),
  comparison(["starts_with"], t.String()),
  comparison(["exists"], optional(t.Boolean())),
])

/** The few keywords of JSON Schema that count in the schema of a trigger. */
const keywords = {
  properties: optional(fieldsOf(payload, { maxProperties: 100 })),
  required: optional(t.Array(t.String(), { maxItems: 100 })),
  enum: optional(t.Array(scalar, { minItems: 1, maxItems: 100 })),
  items: optional(payload),
  format: optional(nameText(64)),
}
const types = word(["object", "array", "string", "number", "integer", "boolean", "null"])
const PayloadForm = closedObject({ type: optional(types), ...keywords })

const source = t.String({ minLength: 1, maxLength: SOURCE_BYTES, pattern: NO_NUL })
/** A subject, a title or the text of a button. */
const line = nameText(SOURCE_BYTES)
const step_key = t.String({ pattern: CATEGORY_SLUG })
const category = optional(t.String({ pattern: CATEGORY_SLUG }))
const group_by = optional(dottedPath)
const fromTemplate = { template_id: optional(nameText(100)) }

const duration = closedObject({
  amount: t.Integer({ minimum: 1, maximum: 10_000 }),
  unit: word(["minutes", "hours", "days"]),
})
export type Duration = Static<typeof duration>

const weekday = word(["mon", "tue", "wed", "thu", "fri", "sat", "sun"])
const days = optional(t.Array(weekday, { minItems: 1, maxItems: 7 }))
const localTime = closedObject({ at: t.String({ pattern: "^([01]\\d|2[0-3]):[0-5]\\d$" }), days })

/** `readAddress` reads the text or the mailbox. */
const mailbox = closedObject({ email: t.String(), name: optional(orNull(t.String())) })
const from = optional(t.Union([t.String({ maxLength: 998 }), mailbox]))

const max_items = optional(t.Integer({ minimum: 1, maximum: 1000, default: 100 }))
const digestOver = (window: TSchema) => closedObject({ window, group_by, max_items })
const limit = t.Integer({ minimum: 1, maximum: 1000 })
const condition = word(["delivered", "read", "clicked", "failed", "replied"])

/** The forms of `config` for each type of step. */
const CONFIGS = {
  email: [
    closedObject({ ...fromTemplate, from }),
    closedObject({ subject: line, html: optional(source), text: optional(source), from }),
  ],
  push: [
    closedObject(fromTemplate),
    closedObject({
      ...{ title: line, body: source, image_url: optional(source), url: optional(source) },
      data: optional(fieldsOf<string>(t.String({ pattern: NO_NUL }))),
    }),
  ],
  sms: [closedObject(fromTemplate), closedObject({ body: source })],
  in_app: [
    closedObject(fromTemplate),
    closedObject({
      ...{ title: line, body: optional(source), action_url: optional(source) },
      ...{ action_label: optional(line), category, priority: optional(word(PRIORITY_WORDS)) },
    }),
  ],
  delay: [duration, closedObject({ until: source }), localTime],
  branch: [
    closedObject({ step_key, condition, within: optional(duration) }),
    closedObject({ rule }),
  ],
  digest: [digestOver(duration), digestOver(localTime)],
  throttle: [closedObject({ limit, window: duration, group_by })],
  event: [closedObject({ name: nameText(100), data: fieldsOf<unknown>(true) })],
  stop: [closedObject({})],
} satisfies Record<string, TObject[]>

type StepType = keyof typeof CONFIGS
const STEP_TYPES = Object.keys(CONFIGS) as StepType[]

const stepOf = <Type extends TSchema, Config extends TSchema>(type: Type, config: Config) =>
  closedObject({
    step_key,
    name: nameText(100),
    ...{ type, config },
    position: t.Integer({ minimum: 0 }),
    parent_step_key: optional(orNull(step_key)),
    branch_path: optional(word(["yes", "no"])),
    conditions: optional(rule),
    on_error: optional(word(["stop", "continue"])),
  })
const Step = t.Union(STEP_TYPES.map((type) => stepOf(t.Literal(type), t.Union(CONFIGS[type]))))
/** What every step says. Of a union of types, the problems would tell nothing. */
const AnyStep = stepOf(word(STEP_TYPES), fieldsOf<unknown>(true))

export type WorkflowStep = Static<typeof AnyStep>

const fields = {
  key: t.String({ pattern: "^[a-z0-9][a-z0-9-]{0,63}$" }),
  name: nameText(100),
  description: optional(t.String({ maxLength: 500, pattern: NO_NUL })),
  is_critical: optional(t.Boolean({ default: false })),
  category,
  tags: optional(t.Array(nameText(100), { maxItems: 10 })),
  trigger_schema: optional(closedObject({ type: t.Literal("object"), ...keywords })),
}
const workflowOf = <Step extends TSchema>(step: Step) =>
  closedObject({ ...fields, steps: t.Array(step, { minItems: 1, maxItems: MOST_STEPS }) })
const Whole = workflowOf(AnyStep)

export type WorkflowInput = Static<typeof Whole>

/** JSON Schema alone: references in the place of what is recursive, and a list of words as `enum`. */
const published = (schema: TSchema): Record<string, unknown> =>
  JSON.parse(JSON.stringify(schema), (_, value) => {
    if (!isObject(value)) return value
    if (value[DEFINITION]) return { $ref: `#/$defs/${value[DEFINITION]}` }
    const words = ((value.anyOf ?? []) as TSchema[]).map((one) => one.const)
    return words[0] === undefined ? value : { type: "string", enum: words }
  })

/** For models, and for other judges of JSON Schema. `check-workflow.ts` has what it cannot say. */
export const workflowSchema = {
  ...published(workflowOf(Step)),
  $defs: { rule: published(RuleForm), payload: published(PayloadForm) },
}

/** Adds what is wrong with the form of a workflow. */
export function checkForm(workflow: unknown, problems: Problems): void {
  check(Whole, workflow, problems)
  if (!isObject(workflow)) return
  const { trigger_schema, steps } = workflow
  checkPayload(trigger_schema, "trigger_schema", problems)
  if (!Array.isArray(steps)) return
  for (const [at, step] of steps.slice(0, MOST_STEPS).entries())
    if (isObject(step)) checkStep(step, `steps.${at}`, problems)
}

function checkStep(
  { type, config, conditions }: Record<string, unknown>,
  path: string,
  problems: Problems,
) {
  checkRule(conditions, `${path}.conditions`, problems)
  const forms = STEP_TYPES.includes(type as StepType) ? CONFIGS[type as StepType] : []
  if (!isObject(config) || forms.length === 0) return
  checkNearest(forms, config, `${path}.config`, problems)
  if (type === "branch") checkRule(config.rule, `${path}.config.rule`, problems)
}

/** Of a value that has none of the forms, the one that knows most of its fields was meant. */
function checkNearest(forms: TObject[], value: object, path: string, problems: Problems): void {
  const found = forms.map((form) => {
    const own = new Problems(`${path}.`)
    check(form, value, own)
    const strange = Object.keys(value).filter((name) => !Object.hasOwn(form.properties, name))
    return { list: own.list, strange: strange.length }
  })
  found.sort((a, b) => a.strange - b.strange || a.list.length - b.list.length)
  for (const { path, code, message } of found[0]?.list ?? []) problems.add(path, code, message)
}

function checkRule(given: unknown, path: string, problems: Problems): void {
  const read = given === undefined ? undefined : parseRule(given)
  if (!read || !("problem" in read)) return
  problems.add([path, read.problem.path].filter(Boolean).join("."), "invalid", read.problem.message)
}

/** The schemas within a schema, however deep. */
function checkPayload(schema: unknown, path: string, problems: Problems): void {
  if (!isObject(schema)) return
  const properties = isObject(schema.properties) ? Object.entries(schema.properties) : []
  const inner = properties.map(([name, value]) => [`properties.${name}`, value] as const)
  for (const [at, value] of [...inner, ["items", schema.items] as const]) {
    if (isObject(value)) checkNearest([PayloadForm], value, `${path}.${at}`, problems)
    checkPayload(value, `${path}.${at}`, problems)
  }
}
