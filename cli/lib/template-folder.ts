import { existsSync, rmSync, watch } from "node:fs"
import { join, sep } from "node:path"
import type { Components } from "../../src/client/components"
import { exits, Failure } from "./errors"
import { demandKind, kindOf, makeFolder, namesIn, readFileIn, writeFileIn } from "./folder-files"

type Template = Components["Template"]

/** The texts of one language. Bodies of email are files of their own. */
interface LocalTexts {
  subject: string | null
  preheader: string | null
  html: string | null
  text: string | null
  /** Of push, sms and in_app. */
  channels: Record<string, unknown>
}

/** A template as its folder holds it, and as `push` sends it. Layouts are named, since ids differ by project. */
export interface LocalTemplate extends LocalTexts {
  name: string
  description: string | null
  layout: string | null
  locale: string | null
  tags: string[]
  variables: unknown[]
  locales: Record<string, LocalTexts>
  /** Values for previews and checks. They are not sent. */
  example: Record<string, unknown>
}

const NAME = /^[a-z0-9][a-z0-9_.-]{0,99}$/
const LOCALE = /^[A-Za-z]{2,8}(?:-[A-Za-z0-9]{1,8}){0,4}$/
const BODY = /^email(?:\.([A-Za-z0-9-]+))?\.(html|txt)$/
const SETTINGS = "template.json"
const EXAMPLE = "example.json"
const MOST_TEMPLATES = 1_000

/** Of one file. A server takes 256 KiB of a text, and says so. */
const MOST_BYTES = 1_048_576

/**
 * The templates below a folder, by name: each folder with a template.json is one. Throws with exit 7, and
 * with exit 66 for a link, a pipe or a device that would be one of their files.
 */
export function readTemplates(folder: string): LocalTemplate[] {
  const names = namesIn(folder).filter((name) => isTemplate(join(folder, name)))
  if (names.length === 0) {
    const message = `There is no template in ${folder}.`
    const hint = `put each template into ${join(folder, "<name>", SETTINGS)}, or run \`belfry templates pull ${folder}\``
    throw new Failure(exits.no_input, "missing_file", message, { hint })
  }
  if (names.length > MOST_TEMPLATES) {
    throw invalid(folder, `has more than ${MOST_TEMPLATES} templates; push them in parts`)
  }
  return names.map((name) => readTemplate(folder, name))
}

/** A link to a folder with a template would be one, so it is refused. Other links are nobody's business. */
function isTemplate(place: string): boolean {
  const kind = kindOf(place)
  if (kind === "link" && existsSync(join(place, SETTINGS))) demandKind(place, "folder")
  return kind === "folder" && kindOf(join(place, SETTINGS)) !== "missing"
}

function readTemplate(folder: string, name: string): LocalTemplate {
  const place = join(folder, name)
  if (!NAME.test(name)) {
    throw invalid(place, "is no name of a template; use a-z, 0-9, _, . and -, at most 100 of them")
  }
  const settings = readObject(join(place, SETTINGS))
  refuseUnknown(join(place, SETTINGS), settings)
  const example = demandKind(join(place, EXAMPLE), "file") ? readObject(join(place, EXAMPLE)) : {}
  const bodies = readBodies(place)
  const named = objectOf(settings.locales, `${join(place, SETTINGS)}: locales`)
  const tags = new Set([...Object.keys(named), ...bodies.keys()])
  tags.delete("")
  const locales = [...tags].sort().map((locale): [string, LocalTexts] => {
    const texts = objectOf(named[locale], `${join(place, SETTINGS)}: locales.${locale}`)
    return [locale, textsOf(texts, bodies.get(locale))]
  })
  return {
    name,
    description: textOrNull(settings.description),
    layout: textOrNull(settings.layout),
    locale: textOrNull(settings.locale),
    tags: listOf(settings.tags) as string[],
    variables: listOf(settings.variables).map(plainVariable),
    ...textsOf(settings, bodies.get("")),
    locales: Object.fromEntries(locales),
    example,
  }
}

const FIELDS = [
  ...["description", "layout", "locale", "tags", "variables"],
  ...["subject", "preheader", "channels", "locales"],
]

/** A field that is written wrong would be missing without a word. */
function refuseUnknown(path: string, settings: object) {
  for (const field of Object.keys(settings)) {
    if (FIELDS.includes(field)) continue
    throw invalid(path, `has the unknown field ${field}; the fields are ${FIELDS.join(", ")}`)
  }
}

const textsOf = (texts: Record<string, unknown>, bodies: Bodies = {}): LocalTexts => ({
  subject: textOrNull(texts.subject),
  preheader: textOrNull(texts.preheader),
  html: bodies.html ?? null,
  text: bodies.txt ?? null,
  channels: objectOf(texts.channels, "channels"),
})

interface Bodies {
  html?: string
  txt?: string
}

/** By locale; "" is the template's own. The last line end of a file is not part of the text. */
function readBodies(place: string): Map<string, Bodies> {
  const all = new Map<string, Bodies>()
  for (const file of namesIn(place)) {
    const [, locale = "", ending] = BODY.exec(file) ?? []
    if (ending === undefined) continue
    if (locale !== "" && !LOCALE.test(locale)) {
      throw invalid(join(place, file), `names no language: ${locale}`)
    }
    const text = readFileIn(join(place, file), MOST_BYTES).replace(/\r?\n$/, "")
    all.set(locale, { ...all.get(locale), [ending]: text })
  }
  return all
}

function readObject(path: string): Record<string, unknown> {
  const text = readFileIn(path, MOST_BYTES)
  try {
    return objectOf(JSON.parse(text), path)
  } catch (error) {
    if (error instanceof Failure) throw error
    throw invalid(path, `is not JSON: ${(error as Error).message}`)
  }
}

function objectOf(value: unknown, where: string): Record<string, unknown> {
  if (value === undefined || value === null) return {}
  if (typeof value === "object" && !Array.isArray(value)) return value as Record<string, unknown>
  throw invalid(where, "must be a JSON object")
}

const textOrNull = (value: unknown) => (typeof value === "string" ? value : null)
const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : [])

const invalid = (where: string, what: string) =>
  new Failure(exits.invalid, "invalid_template", `${where} ${what}.`)

/** The same of a template that a server holds. */
export function localForm(template: Template, nameOf: (id: string) => string): LocalTemplate {
  const { name, description, layout_id, locale, tags, variables, locales } = template
  const others = locales.map((one): [string, LocalTexts] => [one.locale, shownTexts(one)])
  return {
    name,
    description,
    layout: layout_id === null ? null : nameOf(layout_id),
    locale,
    tags,
    variables: variables.map(plainVariable),
    ...shownTexts(template),
    locales: Object.fromEntries(others),
    example: {},
  }
}

type ShownTexts = Pick<Template, "subject" | "html" | "text" | "channels">

function shownTexts({ subject, html, text, channels }: ShownTexts): LocalTexts {
  const { email, ...rest } = channels
  const others = Object.entries(rest).map(([name, texts]) => [name, withoutNothing(texts)])
  const preheader = email?.preheader ?? null
  return { subject, preheader, html, text, channels: Object.fromEntries(others) }
}

/** Without what is so by default, so that a short way to write it is the same. */
function plainVariable(variable: unknown) {
  if (typeof variable !== "object" || variable === null) return variable
  const { required, ...rest } = variable as Record<string, unknown>
  return { ...withoutNothing(rest), ...(required === true && { required }) }
}

/**
 * Writes a template into its folder below `folder`; bodies that it has no more go. Returns whether anything
 * changed. Throws with exit 66 for a link in its way: what it leads to is not written over.
 */
export function writeTemplate(folder: string, template: LocalTemplate): boolean {
  demandNames(template)
  const place = join(folder, template.name)
  makeFolder(place)
  const files = filesOf(template)
  for (const file of files.keys()) demandKind(join(place, file), "file")
  const stale = namesIn(place).filter((file) => BODY.test(file) && !files.has(file))
  for (const file of stale) rmSync(join(place, file))
  let changed = stale.length > 0
  for (const [file, text] of files) {
    const path = join(place, file)
    if (demandKind(path, "file") && readFileIn(path, MOST_BYTES) === text) continue
    writeFileIn(path, text)
    changed = true
  }
  return changed
}

/** What a server says becomes names of files, and must not lead out of the folder. */
function demandNames({ name, locales }: LocalTemplate) {
  const wrong = Object.keys(locales).find((locale) => !LOCALE.test(locale))
  if (!NAME.test(name)) throw invalid(JSON.stringify(name), "is no name of a template")
  if (wrong !== undefined) throw invalid(JSON.stringify(wrong), `of ${name} names no language`)
}

/** What the folder of a template holds, by file name, but for its example. */
export function filesOf(template: LocalTemplate): Map<string, string> {
  const { locales, example: _, name: __, html, text, ...settings } = template
  const files = new Map<string, string>()
  const add = (locale: string, texts: Pick<LocalTexts, "html" | "text">) => {
    if (texts.html !== null) files.set(`email${locale}.html`, `${texts.html}\n`)
    if (texts.text !== null) files.set(`email${locale}.txt`, `${texts.text}\n`)
  }
  add("", { html, text })
  const others = Object.entries(locales).map(([locale, { html, text, ...rest }]) => {
    add(`.${locale}`, { html, text })
    return [locale, withoutNothing(rest)]
  })
  const whole = withoutNothing({ ...settings, locales: Object.fromEntries(others) })
  files.set(SETTINGS, `${JSON.stringify(whole, null, 2)}\n`)
  return files
}

/** Without null, empty lists and empty objects: a folder says what a template has. */
const withoutNothing = (fields: object) =>
  Object.fromEntries(
    Object.entries(fields).filter(
      ([, value]) => value !== null && (typeof value !== "object" || Object.keys(value).length > 0),
    ),
  )

/** The body of POST and PUT /v1/templates. `idOf` gives the id of a layout by its name. */
export function inputOf(template: LocalTemplate, idOf: (name: string) => string) {
  const { name, description, layout, locale, tags, variables, locales } = template
  const others = Object.entries(locales).map(([one, texts]) => [one, textInput(texts)])
  return {
    name,
    ...withoutNothing({ description, locale, tags, variables }),
    ...textInput(template),
    ...(layout !== null && { layout_id: idOf(layout) }),
    ...withoutNothing({ locales: Object.fromEntries(others) }),
  }
}

function textInput({ subject, preheader, html, text, channels }: LocalTexts) {
  const email = withoutNothing({ subject, preheader, html, text })
  const all = Object.keys(email).length > 0 ? { email, ...channels } : channels
  return Object.keys(all).length > 0 ? { channels: all } : {}
}

/** Templates in an order in which each comes behind its layout and its partials. */
export function inOrder(templates: LocalTemplate[]): LocalTemplate[] {
  const byName = new Map(templates.map((one) => [one.name, one]))
  const ordered = new Set<LocalTemplate>()
  const open = new Set<LocalTemplate>()
  const visit = (one: LocalTemplate) => {
    if (ordered.has(one) || open.has(one)) return // a circle is the server's to refuse
    open.add(one)
    for (const name of needsOf(one)) {
      const needed = byName.get(name)
      if (needed) visit(needed)
    }
    ordered.add(one)
  }
  for (const one of templates) visit(one)
  return [...ordered]
}

const PARTIAL = /\{\{~?#?>\s*["']?([a-z0-9][a-z0-9_.-]*)/g

function needsOf({ layout, example: _, ...texts }: LocalTemplate): string[] {
  const partials = [...JSON.stringify(texts).matchAll(PARTIAL)].flatMap(([, name]) => name ?? [])
  return layout === null ? partials : [layout, ...partials]
}

/** Where a layout has the mail. */
export const CONTENT = /\{\{\{\s*content\s*\}\}\}/

/** As deep as the server goes. */
const DEPTH = 5

/** A partial without values of its own. */
const PLAIN_PARTIAL = /\{\{>\s*([a-z0-9][a-z0-9_.-]*)\s*\}\}/g

/** A template with the layout and the partials of its folder written into it. */
export function withNeighbours(template: LocalTemplate, folder: LocalTemplate[]): LocalTemplate {
  const byName = new Map(folder.map((one) => [one.name, one]))
  const fill = (source: string | null, body: "html" | "text", depth = DEPTH): string | null =>
    source?.replace(PLAIN_PARTIAL, (all, name) => {
      const found = depth > 0 ? byName.get(name)?.[body] : undefined
      return found === undefined || found === null ? all : (fill(found, body, depth - 1) ?? all)
    }) ?? null
  let whole = { ...template, html: fill(template.html, "html"), text: fill(template.text, "text") }
  for (let depth = DEPTH; depth > 0; depth--) {
    const layout = whole.layout === null ? undefined : byName.get(whole.layout)
    if (!layout) break
    const around = (body: "html" | "text") => {
      const [outer, inner] = [fill(layout[body], body), whole[body]]
      return outer === null || inner === null ? inner : outer.replace(CONTENT, () => inner)
    }
    whole = { ...whole, html: around("html"), text: around("text"), layout: layout.layout }
  }
  return whole
}

/** Calls `hear` with the name of each template whose files change. */
export function onChange(folder: string, hear: (name: string) => void): Disposable {
  const watcher = watch(folder, { recursive: true }, (_, file) => {
    const [name = ""] = (file ?? "").split(sep)
    if (name !== "") hear(name)
  })
  return { [Symbol.dispose]: () => watcher.close() }
}
