import { Type as t } from "@sinclair/typebox"
import type { Problems } from "../core/errors"
import { checkMetadata, metadataObject } from "../http/field-schemas"
import { isLonger } from "../lib/text"

/* The fields of a send that every channel has: how the reference shows them, and how they are read. */

export const REQUIRED = "The field is required."

export function readFlag(value: unknown, path: string, problems: Problems): boolean | null {
  if (value == null || typeof value === "boolean") return value ?? null
  return problems.add(path, "invalid", "The value must be true or false.") ?? null
}

const CONTROL = /[\p{Cc}\u2028\u2029]/u

/** Control characters are refused, never cleaned: a line break would begin another header. */
export const isLine = (text: string, most: number) =>
  !isLonger(text, most) && !CONTROL.test(text) && text.isWellFormed()

const MOST_TAGS = 10
export const MAX_TAG = 100

/** `["a"]`, or `[{name, value}]` which becomes `name:value`. */
export function readTags(value: unknown, problems: Problems): string[] {
  if (value == null) return []
  if (!Array.isArray(value) || value.length > MOST_TAGS) {
    const hint = `The value must be a list of at most ${MOST_TAGS} tags.`
    return problems.add("tags", "invalid", hint) ?? []
  }
  return value.flatMap((item, at) => {
    const tag = typeof item === "string" ? item : pair(item)
    if (tag && isLine(tag, MAX_TAG)) return [tag]
    const hint = `A tag must be one line of 1 to ${MAX_TAG} characters.`
    return problems.add(`tags.${at}`, "invalid", hint) ?? []
  })
}

function pair(item: unknown): string | undefined {
  const { name, value } = (item ?? {}) as Record<string, unknown>
  return typeof name === "string" && typeof value === "string" ? `${name}:${value}` : undefined
}

export function readMetadata(value: unknown, problems: Problems): Record<string, unknown> {
  if (value == null) return {}
  const metadata = readObject(value, "metadata", problems)
  checkMetadata(metadata, problems)
  return metadata
}

export interface TemplateFields {
  /** The id or name of the template that takes the place of subject, html and text. */
  template: string | null
  /** Null: the texts are sent as they are. */
  variables: Record<string, unknown> | null
  /** Absent: the published one. */
  template_version?: number
}

const LONGEST_NAME = 100

const name = (description: string) => t.String({ maxLength: LONGEST_NAME, description })
const values = (description: string) =>
  t.Optional(t.Record(t.String(), t.Unknown(), { description }))

/** The template of a send, and the variables. `texts`: what it takes the place of, as a sentence names it. */
export const templateFields = (texts: string) => ({
  template_id: t.Optional(name(`The id or the name of a template, in the place of ${texts}.`)),
  template: t.Optional(
    t.Object(
      { id: name("The id or the name of the template."), variables: values("Its variables.") },
      { description: "The same as `template_id` and `variables`." },
    ),
  ),
  variables: values(
    `The variables of the template. Without a template, they fill the Handlebars of ${texts}.`,
  ),
  template_data: values("Variables as well. Where both name one, `variables` wins."),
})

/** What a send of any channel may carry along. */
export const carriedFields = {
  tags: t.Optional(
    t.Union([
      t.Array(t.String({ maxLength: 100 }), { maxItems: 10 }),
      t.Array(t.Object({ name: t.String(), value: t.String() }), { maxItems: 10 }),
    ]),
  ),
  metadata: t.Optional(
    metadataObject("Your own data, at most 50 keys and 16 KiB. Reads return it; it is not sent."),
  ),
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
    problems.add("template.id", "required", REQUIRED)
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

export function readObject(
  value: unknown,
  path: string,
  problems: Problems,
  hint = "The value must be an object.",
): Record<string, unknown> {
  const is_object = typeof value === "object" && value !== null && !Array.isArray(value)
  if (is_object) return value as Record<string, unknown>
  return problems.add(path, "invalid", hint) ?? {}
}
