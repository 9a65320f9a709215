import {
  bared,
  bareObject,
  environment,
  escapeFor,
  type Handlebars,
  noticingGaps,
  plain,
  problemOf,
  type TemplateProblem,
  Unfit,
} from "./handlebars"
import { type HelperSetting, handlebarsHelpers } from "./handlebars-helpers"
import { DEADLINE_MS, LONG_MS, OUTPUT_BYTES } from "./limits"
import { type Noticing, parseText, TEXT, VALUE } from "./syntax"
import type { TemplateVariable } from "./tables"
import type { TemplateText } from "./template-sources"
import { COMPILER, CONTENT } from "./validate-template-task"
import { isOfType } from "./variables"

/** All that is needed to render one channel of a template in one language. */
export interface TemplateSources {
  texts: TemplateText[]
  /** Of the layouts, from the inside to the outside. */
  layouts: TemplateText[][]
  partials: Record<string, TemplateText[]>
  variables: TemplateVariable[]
  locale: string
  timezone: string
}

export interface RenderJob {
  /** The same for the same sources. */
  key: string
  /** Left out where the thread probably has them. */
  sources?: TemplateSources
  /** The variables as JSON. */
  data: string
}

/** What came of a rendering, and whether it took much of the thread's time. */
export type RenderAnswer = RenderResult & { took_long?: true }

/** The rendered texts by their names, or why there are none. */
type RenderResult =
  | { texts: Record<string, string>; without_value: string[] }
  | { missing: string[] }
  | { problem: TemplateProblem & { field: string | null } }
  /** The thread does not have the sources. */
  | { unknown: true }

type Compiled = Handlebars.TemplateDelegate

interface CompiledText {
  text: TemplateText
  run: Compiled
  /** Whether another text can stand in it. */
  has_place: boolean
}

interface CompiledTexts {
  texts: CompiledText[]
  layouts: CompiledText[][]
  partialsOf: (text: TemplateText) => Record<string, Compiled>
}

interface CompiledTemplate {
  quick: CompiledTexts
  /** Where the quick form printed a value that is not there, this one says its name. */
  exact: () => CompiledTexts
  sources: TemplateSources
  size: number
}

/** What happens while one template is rendered. */
interface Run extends HelperSetting {
  missing: Set<string>
  /** Optional variables that have neither value nor fallback. */
  empty: string[]
}

const IDLE: Run = { mode: "text", locale: "en", timezone: "UTC", missing: new Set(), empty: [] }
let run = IDLE

const handlebars = environment()
handlebars.unregisterHelper("lookup")
for (const [name, help] of handlebarsHelpers(() => run)) handlebars.registerHelper(name, help)
handlebars.registerHelper(VALUE, (value: unknown, name: string) => {
  if (value === undefined && !run.empty.some((key) => isBelow(name, key))) run.missing.add(name)
  return value
})
handlebars.registerHelper(TEXT, (value: unknown) => plain(value))

/** Turns of loops between two looks at the clock. */
const TURNS = 1024
let turns = 0
let render_until = Number.POSITIVE_INFINITY

/**
 * Loops ask for the time, so that a template which hangs in them ends alone. To end its thread, as for other
 * ways to hang, costs 30 ms of processor time, and other renderings of its task begin anew.
 */
const each = handlebars.helpers.each as Handlebars.HelperDelegate
handlebars.registerHelper("each", function (this: unknown, list, options) {
  if (typeof options?.fn !== "function") return each.call(this, list, options)
  const turn = options.fn as (...given: unknown[]) => string
  const fn = (...given: unknown[]) => {
    turns += 1
    if (turns % TURNS === 0 && isLate()) throw tookTooLong()
    return turn(...given)
  }
  return each.call(this, list, { ...options, fn })
})

/** Of the thread, when its batch began. */
let used_before = process.threadCpuUsage()

const workedMs = () => {
  const { user, system } = process.threadCpuUsage(used_before)
  return (user + system) / 1000
}

/** The clock on the wall is asked first, because it costs less. */
const isLate = () => performance.now() > render_until && workedMs() > DEADLINE_MS

const tookTooLong = () => new Unfit("timeout", `Rendering took longer than ${DEADLINE_MS} ms.`)

const isBelow = (name: string, key: string) =>
  name === key || name.startsWith(`${key}.`) || name.startsWith(`${key}[]`)

const known = new Map<string, CompiledTemplate>()
let known_size = 0
const MOST_KNOWN = 1000
const MOST_SIZE = 16_777_216

/** Runs in the worker: each job for itself. Never throws. */
export function renderTemplates(jobs: RenderJob[]): RenderAnswer[] {
  const noteLong = longNoter()
  return jobs.map((job) => noteLong(renderOne(job)))
}

/**
 * Tells of each rendering in turn whether it took long. The clock on the wall is asked first, because it costs
 * less. Only the processor time counts: on a busy machine a thread waits without a fault of its template.
 */
function longNoter(): (result: RenderResult) => RenderAnswer {
  used_before = process.threadCpuUsage()
  let begun = performance.now()
  return (result) => {
    const ended = performance.now()
    const is_suspect = ended - begun > LONG_MS
    begun = ended
    if (!is_suspect) return result
    const worked_ms = workedMs()
    used_before = process.threadCpuUsage()
    return worked_ms > LONG_MS ? { ...result, took_long: true } : result
  }
}

function renderOne({ key, sources, data }: RenderJob): RenderResult {
  render_until = performance.now() + DEADLINE_MS
  try {
    const template = lookup(key) ?? (sources && keep(key, compile(sources)))
    if (!template) return { unknown: true }
    return render(template, bared(JSON.parse(data)) as Record<string, unknown>)
  } catch (error) {
    return { problem: { ...problemOf(error), field: error instanceof InText ? error.field : null } }
  } finally {
    run = IDLE
  }
}

function lookup(key: string): CompiledTemplate | undefined {
  const found = known.get(key)
  if (!found) return undefined
  known.delete(key) // and set again: the least used one is always the first
  known.set(key, found)
  return found
}

function keep(key: string, template: CompiledTemplate): CompiledTemplate {
  known.set(key, template)
  known_size += template.size
  for (const [oldest, { size }] of known) {
    if (known.size <= MOST_KNOWN && known_size <= MOST_SIZE) break
    if (oldest === key) break
    known.delete(oldest)
    known_size -= size
  }
  return template
}

/** A mistake in one of the texts. */
class InText extends Unfit {
  readonly field: string

  constructor(field: string, { reason, message, line, column }: TemplateProblem) {
    const at = line === null ? undefined : { line, column: (column ?? 1) - 1 }
    super(reason, message, at && { source: "", start: at, end: at })
    this.field = field
  }
}

function within<Made>(field: string, work: () => Made): Made {
  try {
    return work()
  } catch (error) {
    throw error instanceof InText ? error : new InText(field, problemOf(error))
  }
}

function compile(sources: TemplateSources): CompiledTemplate {
  const all = [sources.texts, ...sources.layouts, ...Object.values(sources.partials)].flat()
  let exact: CompiledTexts | undefined
  return {
    quick: compileTexts(sources, "quick"),
    exact: () => (exact ??= compileTexts(sources, "exact")),
    sources,
    size: all.reduce((sum, { source }) => sum + source.length, 0),
  }
}

function compileTexts(
  { texts, layouts, partials }: TemplateSources,
  noticing: Noticing,
): CompiledTexts {
  const known = new Map<string, Record<string, Compiled>>()
  const compileOne = (text: TemplateText) => compileText(text, partials, noticing)
  return {
    texts: texts.map(compileOne),
    layouts: layouts.map((layout) => layout.map(compileOne)),
    partialsOf(text) {
      const made = known.get(text.part) ?? compilePartials(partials, text, compileOne)
      known.set(text.part, made)
      return made
    },
  }
}

const compileText = (
  text: TemplateText,
  partials: TemplateSources["partials"],
  noticing: Noticing,
): CompiledText =>
  within(text.field, () => {
    const { tree, facts } = parseText(text.source, noticing)
    for (const [name, loc] of facts.partials) {
      if (!Object.hasOwn(partials, name)) throw new Unfit("syntax", noPartial(name), loc)
    }
    const has_place = facts.names.has(CONTENT)
    return { text, run: handlebars.compile(tree, COMPILER), has_place }
  })

const noPartial = (name: string) =>
  `There is no template ${name} to include. Only stored templates can include others.`

/** A partial gives the text of the same name, or of the same kind. */
function compilePartials(
  partials: TemplateSources["partials"],
  { part, mode }: TemplateText,
  compileOne: (text: TemplateText) => CompiledText,
) {
  const made: Record<string, Compiled> = Object.create(null)
  for (const [name, texts] of Object.entries(partials)) {
    const names = mode === "html" ? ["html"] : [part, "text", "body"]
    const found = names
      .map((wanted) => texts.find((text) => text.part === wanted))
      .find((text) => text !== undefined)
    made[name] = found ? compileOne(found).run : () => fail(`${name} has no ${names.join(" or ")}.`)
  }
  return made
}

function fail(message: string): never {
  throw new Unfit("failed", message)
}

function render(template: CompiledTemplate, data: Record<string, unknown>): RenderAnswer {
  const { locale, timezone, variables } = template.sources
  run = { mode: "text", locale, timezone, missing: new Set(), empty: [] }
  const without_value = fill(data, variables)
  const { made, has_gap } = noticingGaps(() => renderAll(template.quick, data))
  const { texts, problem } = has_gap ? renderAll(template.exact(), data) : made
  if (run.missing.size > 0) return { missing: [...run.missing].sort() }
  if (problem) throw problem
  return { texts, without_value }
}

/** The texts up to the first problem, and behind it for the names that are missing. */
function renderAll(template: CompiledTexts, data: Record<string, unknown>) {
  const texts: Record<string, string> = {}
  let problem: unknown
  let size = 0
  for (const compiled of template.texts) {
    try {
      const text = renderText(template, compiled, data)
      size += Buffer.byteLength(text)
      if (size > OUTPUT_BYTES) fail(`The result is larger than ${OUTPUT_BYTES} bytes.`)
      texts[compiled.text.part] = text
    } catch (error) {
      problem ??= error
      if (isLate()) break
    }
  }
  return { texts, problem }
}

function renderText(
  template: CompiledTexts,
  compiled: CompiledText,
  data: Record<string, unknown>,
): string {
  const { part, mode, field } = compiled.text
  run.mode = mode
  escapeFor(mode)
  const partials = template.partialsOf(compiled.text)
  let text = within(field, () => compiled.run(data, { partials }))
  for (const layout of template.layouts) {
    const outer = layout.find((one) => one.text.part === part)
    if (!outer || (part !== "html" && part !== "text")) continue
    // A version from before may have been published again: nobody is sent a frame without its text.
    if (!outer.has_place) throw new InText("layout_id", NO_PLACE)
    const around = Object.assign(bareObject(), data, { [CONTENT]: text })
    text = within("layout_id", () => outer.run(around, { partials }))
  }
  return cleaned(text, compiled.text)
}

const NO_PLACE = {
  reason: "failed",
  message: "The layout has no place for the text. It needs {{{content}}}.",
  line: null,
  column: null,
} as const

const CONTROL = /[\0-\x08\v\f\x0e-\x1f\x7f-\x9f]/g
const LINE_BREAK = /[\r\n\u2028\u2029]/

function cleaned(text: string, { part, mode, field }: TemplateText): string {
  if (mode === "html") return text.replaceAll("\0", "").toWellFormed()
  const plain = text.replace(CONTROL, "").toWellFormed()
  if (part !== "subject") return plain
  if (LINE_BREAK.test(plain)) {
    const message = "The rendered subject has a line break. One of the values may contain it."
    throw new InText(field, { reason: "failed", message, line: null, column: null })
  }
  return plain.replaceAll("\t", " ")
}

/**
 * Puts the fallback, or empty text, in the place of declared variables without a value. Returns their
 * keys. What is required and missing is noticed, and a value of another type is a fault.
 */
function fill(data: Record<string, unknown>, variables: TemplateVariable[]): string[] {
  const without_value: string[] = []
  const wrong: string[] = []
  for (const { key, type, required, fallback } of variables) {
    const value = valueAt(data, key)
    if (value !== undefined && value !== null) {
      if (!isOfType(type, value)) wrong.push(`${key} is no ${type}`)
      continue
    }
    if (required) run.missing.add(key)
    else without_value.push(key)
    if (!required && fallback === null) run.empty.push(key)
    putAt(data, key, fallback === null ? "" : bared(fallback))
  }
  if (wrong.length > 0 && run.missing.size === 0)
    fail(`A value has another type: ${wrong.join(", ")}.`)
  return without_value
}

function valueAt(data: Record<string, unknown>, key: string): unknown {
  let value: unknown = data
  for (const name of key.split(".")) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, name)) return undefined
    value = (value as Record<string, unknown>)[name]
  }
  return value
}

function putAt(data: Record<string, unknown>, key: string, value: unknown): void {
  const names = key.split(".")
  const last = names.pop() ?? ""
  let place = data
  for (const name of names) {
    const inner = Object.hasOwn(place, name) ? place[name] : undefined
    if (typeof inner === "object" && inner !== null) place = inner as Record<string, unknown>
    else if (inner === undefined || inner === null || inner === "")
      place = place[name] = bareObject()
    else return
  }
  place[last] = value
}
