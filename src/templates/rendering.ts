import type { Static } from "@sinclair/typebox"
import { eq } from "drizzle-orm"
import { ApiError, fail } from "../core/errors"
import { now } from "../core/time"
import type { Workers } from "../core/workers"
import { projects } from "../identity/tables"
import { smsSegments } from "../lib/sms-segments"
import { textFromHtml } from "../lib/text-from-html"
import { cached } from "../store/cached"
import type { Reader } from "../store/store"
import type { TemplateSubscriber } from "../subscribers/template-subscriber"
import type { RenderAnswer } from "./render-templates-task"
import type { Rendered } from "./schemas"
import { afterChanges, type TemplateChanges } from "./template-input"
import type { KeyedSources, TemplateRenderer } from "./template-renderer"
import { textsOf } from "./template-sources"
import {
  type UsableTemplate,
  usableTemplate,
  usableTexts,
  type WantedTexts,
} from "./usable-template"
import { invalidTemplate, validateTexts } from "./validate-template"

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

interface RenderedTexts {
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
interface ValuesInput {
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
const GIVEN: ReadonlySet<string> = new Set([
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

export interface PreviewParts extends TemplateRendering {
  workers: Workers
  /** Of nobody. */
  pages: RecipientPages
}

type Preview = Static<typeof Rendered>

/** Renders a stored template. Throws 404, and 422 as `renderTexts` does. */
export async function preview(
  parts: PreviewParts,
  project_id: string,
  wanted: WantedTexts,
  variables: Record<string, unknown>,
): Promise<Preview> {
  const usable = await usableTemplate(parts.read, project_id, { ...wanted, preview: true })
  return previewOf(parts, project_id, usable, variables)
}

export interface DraftToRender extends Pick<WantedTexts, "channel" | "locale"> {
  template: TemplateChanges
  variables: Record<string, unknown>
}

/** Renders texts that are not stored. Throws 422, also for their mistakes. */
export async function previewDraft(
  parts: PreviewParts,
  project_id: string,
  { template, variables, ...which }: DraftToRender,
): Promise<Preview> {
  const texts = afterChanges(template)
  const { names, partials } = await validateTexts(parts.workers, textsOf(texts))
  const own = {
    ...texts,
    ...{ id: null, name: template.name ?? "", version: 0 },
    partials: partials.map(({ name }) => name),
    detected_variables: names,
  }
  const usable = await usableTexts(parts.read, project_id, own, which)
  const made = await previewOf(parts, project_id, usable, variables)
  return { ...made, template_id: null, version: null }
}

async function previewOf(
  parts: PreviewParts,
  project_id: string,
  usable: UsableTemplate,
  variables: Record<string, unknown>,
): Promise<Preview> {
  const { template, channel, names, sources } = usable
  const rendered = await renderTexts(parts, project_id, usable, variables, parts.pages)
  const { texts, without_value } = rendered
  const used = new Set([...names, ...sources.variables.map(({ key }) => key)].map(firstName))
  const { subject = null, html = null, preheader = null, title = null, body = null } = texts
  const text = texts.text ?? (html === null ? null : textFromHtml(html))
  const unknown = Object.keys(variables).filter((name) => !used.has(name) && !GIVEN.has(name))
  const size = [...Object.values(texts), ...(texts.text === undefined && text ? [text] : [])]
  return {
    template_id: template.id,
    version: template.version,
    channel,
    ...{ subject, html, text, preheader, title, body },
    missing_variables: without_value,
    unknown_variables: unknown.sort(),
    size_bytes: size.reduce((sum, one) => sum + Buffer.byteLength(one), 0),
    sms: channel === "sms" && body !== null ? smsSegments(body) : null,
  }
}

const firstName = (name: string) => name.split(".", 1)[0] ?? name
