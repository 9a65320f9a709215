import { Type as t } from "@sinclair/typebox"
import type { Problems } from "../core/errors"
import { SOURCE_BYTES } from "../templates/limits"

/** What a send says of a template. */
export interface TemplateFields {
  /** The id or name of the template that takes the place of subject, html and text. */
  template: string | null
  /** Null: the texts are sent as they are. */
  variables: Record<string, unknown> | null
  /** Absent: the published one. */
  template_version?: number
}

/** The fields of a request that name a template or give variables. */
export const TEMPLATE_FIELDS = ["template", "template_id", "variables", "template_data"] as const

const LONGEST_NAME = 100

const name = (description: string) => t.String({ maxLength: LONGEST_NAME, description })
const values = (description: string) =>
  t.Optional(t.Record(t.String(), t.Unknown(), { description }))

/** The texts of a send, and what stands in their place. */
export const contentFields = {
  subject: t.Optional(
    t.String({
      maxLength: SOURCE_BYTES,
      description:
        "Required without a template. A mail has 1 to 998 characters of it; its Handlebars source may be longer.",
    }),
  ),
  html: t.Optional(t.String()),
  text: t.Optional(t.String({ description: "Plain text. Without it, it is made from `html`." })),
  template_id: t.Optional(
    name("The id or the name of a template, in the place of `subject`, `html` and `text`."),
  ),
  template: t.Optional(
    t.Object(
      { id: name("The id or the name of the template."), variables: values("Its variables.") },
      { description: "The same as `template_id` and `variables`." },
    ),
  ),
  variables: values(
    "The variables of the template. Without a template, `subject`, `html` and `text` are Handlebars.",
  ),
  template_data: values("Variables as well. Where both name one, `variables` wins."),
}

/** Reads `template_id` or `template: {id, variables?}`, and `variables` with its alias `template_data`. */
export function readTemplateFields(
  given: Record<string, unknown>,
  problems: Problems,
): TemplateFields {
  const { template, template_id } = given
  const whole = template == null ? {} : readObject(template, "template", problems)
  const own = whole.id == null ? null : readName(whole.id, "template.id", problems)
  if (typeof template === "object" && template !== null && whole.id == null) {
    problems.add("template.id", "required", "The field is required.")
  }
  const named = template_id == null ? null : readName(template_id, "template_id", problems)
  if (own !== null && named !== null && own !== named) {
    const message = "template.id and template_id say the same. Give one of them."
    problems.add("template_id", "invalid", message)
  }
  const sources = [
    ["template_data", given.template_data],
    ["template.variables", whole.variables],
    ["variables", given.variables],
  ] as const
  const values = sources.flatMap(([path, value]) =>
    value == null ? [] : [readObject(value, path, problems)],
  )
  return {
    template: own ?? named,
    variables: values.length === 0 ? null : Object.assign({}, ...values),
  }
}

function readName(value: unknown, path: string, problems: Problems): string {
  if (typeof value === "string" && value !== "" && value.length <= LONGEST_NAME) return value
  return problems.add(path, "invalid", "The value must be the id or the name of a template.") ?? ""
}

function readObject(value: unknown, path: string, problems: Problems): Record<string, unknown> {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) {
    return value as Record<string, unknown>
  }
  return problems.add(path, "invalid", "The value must be an object.") ?? {}
}
