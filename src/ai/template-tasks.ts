import type { Static, TObject, TSchema } from "@sinclair/typebox"
import { ApiError, Problems } from "../core/errors"
import type { Workers } from "../core/workers"
import { fits, isObject } from "../http/validate"
import type { Caller } from "../identity/caller"
import type { AudienceChannel } from "../lib/preferences"
import { countCharacters, slugFrom } from "../lib/text"
import type { Store } from "../store/store"
import { TEMPLATE_NAME } from "../templates/limits"
import { TemplateInput } from "../templates/schemas"
import { KEY, readTemplate } from "../templates/template-input"
import { validateNew } from "../templates/writing"
import { activeContent } from "./active-content"
import type { Drafting, Rewriting, Suggesting } from "./ai-schemas"
import type { AiTask } from "./ai-task"
import { projectContext } from "./project-context"
import { DraftedByModel, draftTemplate, LINE } from "./prompts/draft-template"
import { RewrittenByModel, rewriteBlock } from "./prompts/rewrite-block"
import { SuggestedSubjects, suggestSubjects } from "./prompts/suggest-subjects"
import { withKnownVariables } from "./variable-check"

export interface TemplateTaskParts {
  store: Store
  workers: Workers
}

const SUGGESTIONS = 5
/** To judge a subject costs something. */
const MOST_JUDGED = 20

/** Asks for five subjects of a text, and once more where the model gave fewer that can be used. */
export async function suggestTask(
  parts: TemplateTaskParts,
  caller: Caller,
  { channel, template_body }: Static<typeof Suggesting>,
): Promise<AiTask> {
  const { shown } = await projectContext(parts.store.read, caller.project_id)
  return {
    action: "suggest_subjects",
    prompt: suggestSubjects(channel, template_body, shown),
    tries: 2,
    async read(output) {
      const { suggestions: given } = shaped(SuggestedSubjects, output)
      const apart = [...new Map(given.map((one) => [one.subject, one])).values()]
      const ranked = apart.sort((a, b) => b.predicted_open_rate - a.predicted_open_rate)
      const judged = ranked.slice(0, MOST_JUDGED).map(({ subject }) => {
        return namesIn(parts, caller, { name: NAMELESS, subject })
      })
      const ends = await Promise.allSettled(judged)
      const fit = ranked.filter((_, at) => ends[at]?.status === "fulfilled")
      if (fit.length < SUGGESTIONS) throw unfit("too_few", "It has fewer than 5 usable subjects.")
      const suggestions = fit.slice(0, SUGGESTIONS).map((one, at) => {
        return { rank: at + 1, ...one, length: countCharacters(one.subject) }
      })
      return { complete: { suggestions } }
    },
  }
}

const NAMELESS = "draft"

/** Asks for a template from a brief. Nothing is stored. */
export async function draftTask(
  parts: TemplateTaskParts,
  caller: Caller,
  body: Static<typeof Drafting>,
): Promise<AiTask> {
  const { known, shown } = await projectContext(parts.store.read, caller.project_id, body.variables)
  return {
    action: "draft_template",
    prompt: draftTemplate(body, shown),
    async read(output) {
      const given = shaped(DraftedByModel, output).template
      const { made, variables } = await withKnownVariables(known, async (fix) => {
        const { input, template } = draftOf(body.channel, given, fix)
        return { template, names: await namesIn(parts, caller, input) }
      })
      return { complete: { template: made.template }, variables }
    },
  }
}

type GivenTemplate = Static<typeof DraftedByModel>["template"]

/** The texts that a channel has. One of `html` and `text` may be missing. */
const TEXTS_OF = {
  email: ["subject", "html", "text"],
  push: ["title", "body"],
  sms: ["body"],
  in_app: ["title", "body"],
} as const satisfies Record<AudienceChannel, readonly (keyof GivenTemplate)[]>

/** What would be saved, and what the caller is given. */
function draftOf(channel: AudienceChannel, given: GivenTemplate, fix: (text: string) => string) {
  const spare = given.html?.trim() ? "text" : "html"
  const texts = TEXTS_OF[channel].map((part) => {
    const text = given[part]?.trim() || null
    const is_line = part === "subject" || part === "title"
    const is_fit = is_line ? SUBJECT.test(text ?? "") : text !== null || part === spare
    if (!is_fit) throw unfit("invalid_result", `It needs a usable ${part}.`)
    return [part, text && fix(text)]
  })
  const own: Record<string, string | null> = Object.fromEntries(texts)
  const declared = given.variables.map((one) => {
    const key = fix(`{{${one.key}}}`).slice(2, -2)
    return [key, { ...one, key, fallback: null }] as const
  })
  // What cannot be declared, such as `items[].name`, is used all the same.
  const { items } = TemplateInput.properties.variables
  const variables = [...new Map(declared).values()].filter(
    (one) => KEY.test(one.key) && fits(items, one),
  )
  const name = NAME.test(given.name) ? given.name : slugFrom(given.name) || NAMELESS
  const none = { subject: null, html: null, text: null, title: null, body: null }
  return {
    input: { name, variables, ...(channel === "email" ? own : { channels: { [channel]: own } }) },
    template: { name, channel, ...none, ...own, variables },
  }
}

const NAME = new RegExp(TEMPLATE_NAME)
const SUBJECT = new RegExp(LINE)

/** Asks for another content of one block of a template. */
export async function rewriteTask(
  parts: TemplateTaskParts,
  caller: Caller,
  body: Static<typeof Rewriting>,
): Promise<AiTask> {
  const { known, shown } = await projectContext(parts.store.read, caller.project_id, body.variables)
  const { id = null, type } = body.block
  return {
    action: "rewrite_template",
    prompt: rewriteBlock(body, shown),
    async read(output) {
      const given = shaped(RewrittenByModel, output).block.content
      if (given.trim() === "") throw unfit("invalid_result", "It needs a content.")
      const { made, variables } = await withKnownVariables(known, async (fix) => {
        const input = { name: NAMELESS, html: fix(given) }
        return { ...input, names: await namesIn(parts, caller, input) }
      })
      const content = made.html
      const is_long = countCharacters(content) > (body.max_length ?? content.length)
      if (is_long) throw unfit("too_long", "It is longer than max_length.")
      return { complete: { block: { id, type, content } }, variables }
    },
  }
}

/**
 * The names that a template of a model uses. Throws where `POST /v1/templates` would refuse it, or where its
 * html has active content.
 */
async function namesIn(parts: TemplateTaskParts, caller: Caller, given: Record<string, unknown>) {
  const active = activeContent(String(given.html ?? ""))
  if (active) throw unfit("invalid_template", `It has ${active}, which is refused.`)
  const problems = new Problems()
  try {
    const input = readTemplate(given, problems)
    problems.throwIfAny()
    return (await validateNew(parts, caller, input)).written.content.detected_variables
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 422) throw error
    throw unfit("invalid_template", error.message, error.details)
  }
}

const unfit = (reason: string, why: string, details: object = {}) =>
  new ApiError("provider_error", `${UNFIT} ${why}`, { ...details, reason })

const UNFIT = "The answer of the AI model cannot be used. Try again."

/**
 * What a schema names, and nothing else of an answer. The one name around it may be left out. Throws where the rest
 * does not fit.
 */
function shaped<Schema extends TObject>(schema: Schema, output: unknown): Static<Schema> {
  const [around = ""] = Object.keys(schema.properties)
  const is_whole = isObject(output) && Object.hasOwn(output, around)
  const found = named(schema, is_whole ? output : { [around]: output })
  if (fits(schema, found)) return found as Static<Schema>
  throw unfit("invalid_result", "It has another form than was asked.")
}

/** An absent field is empty or null, and a list has those items alone that fit. */
function named({ type, items, properties }: TSchema, value: unknown): unknown {
  if (type === "array") {
    const list = Array.isArray(value) ? value.map((one) => named(items, one)) : []
    return list.filter((one) => fits(items, one))
  }
  if (type !== "object") return value ?? (type === "string" ? "" : null)
  const given = value as Record<string, unknown> | null
  const fields = Object.entries<TSchema>(properties)
  return Object.fromEntries(fields.map(([name, field]) => [name, named(field, given?.[name])]))
}
