import { eq } from "drizzle-orm"
import { ApiError, fail } from "../core/errors"
import { now } from "../core/time"
import { projects } from "../identity/tables"
import { cached } from "../store/cached"
import type { Reader } from "../store/store"
import type { TemplateSubscriber } from "../subscribers/template-subscriber"
import type { RenderAnswer } from "./render-templates-task"
import type { KeyedSources, TemplateRenderer } from "./template-renderer"
import { invalidTemplate } from "./validate-template"

/** What renders templates: where they are read, and the threads. */
export interface TemplateRendering {
  read: Reader
  renderer: TemplateRenderer
}

/** The addresses of the pages of a recipient; absent where the mail has no category. */
export interface RecipientPages {
  unsubscribe_url?: string
  preferences_url?: string
}

/** Bytes of the variables as JSON. */
const MOST_VARIABLE_BYTES = 1_048_576

export interface RenderedTexts {
  texts: Record<string, string>
  /** Declared variables without a value. */
  without_value: string[]
}

/**
 * Renders texts with the variables of a caller and those that every template is given (contract 23).
 * Throws 422 `template_render_failed` with every missing name, or `invalid_template`.
 */
export async function renderTexts(
  { read, renderer }: TemplateRendering,
  project_id: string,
  keyed: KeyedSources,
  variables: Record<string, unknown>,
  pages: RecipientPages = {},
  subscriber: TemplateSubscriber | null = null,
): Promise<RenderedTexts> {
  const project = { id: project_id, name: await projectName(read, project_id) }
  return renderWith(renderer, keyed, { subscriber, project, now: now() }, variables, pages)
}

/** What every template is given, beside the pages of its recipient. */
export interface ValuesInput {
  subscriber: Record<string, unknown> | null
  project: { id: string; name: string }
  /** The moment of rendering, in ISO 8601. */
  now: string
}

/** As `renderTexts`, with given values: the same ones make the same texts. */
export async function renderWith(
  renderer: TemplateRenderer,
  keyed: KeyedSources,
  given: ValuesInput,
  variables: Record<string, unknown>,
  pages: RecipientPages = {},
): Promise<RenderedTexts> {
  const data = JSON.stringify({ ...NO_PAGES, ...given, ...variables, ...pages })
  if (data.length > MOST_VARIABLE_BYTES) {
    const message = `The variables have more than ${MOST_VARIABLE_BYTES} bytes as JSON.`
    fail("template_render_failed", message, { missing: [], reason: "too_large" })
  }
  const answer = await renderer.render(given.project.id, keyed, data)
  if ("texts" in answer) return answer
  throw refusalOf(answer)
}

const NO_PAGES = { unsubscribe_url: "", preferences_url: "" }

/** The names that every template is given. */
export const GIVEN: ReadonlySet<string> = new Set([
  "subscriber",
  "project",
  "unsubscribe_url",
  "preferences_url",
  "now",
])

const names = cached<string>({ tables: ["projects"] })
const RECENT_MS = 60_000

export const projectName = (db: Reader, project_id: string) =>
  names(
    db,
    project_id,
    async () => {
      const ours = eq(projects.id, project_id)
      const [row] = await db.select({ name: projects.name }).from(projects).where(ours)
      return row?.name ?? ""
    },
    RECENT_MS,
  )

const MOST_NAMED = 10

function refusalOf(answer: Exclude<RenderAnswer, RenderedTexts>): ApiError {
  if ("missing" in answer) {
    const { missing } = answer
    const more = missing.length > MOST_NAMED ? ` and ${missing.length - MOST_NAMED} more` : ""
    const list = missing.slice(0, MOST_NAMED).join(", ") + more
    const message = `Variables have no value: ${list}. Give them, or declare them as optional.`
    return new ApiError("template_render_failed", message, { missing })
  }
  if ("unknown" in answer) throw new Error("a thread was not given the sources of a template")
  const { field, ...problem } = answer.problem
  if (problem.reason === "syntax") return invalidTemplate(field ?? "body", problem)
  const { reason, message, line, column } = problem
  const where = field === null ? "" : `${field}: `
  const details = { missing: [], reason, field, line, column }
  return new ApiError("template_render_failed", `${where}${message}`, details)
}
