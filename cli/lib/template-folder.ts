import { existsSync, rmSync } from "node:fs"
import { join } from "node:path"
import type { Components } from "../../src/client/components"
import { exits, Failure } from "./errors"
import { kindOf, makeFolder, namesIn, readFileIn, requireKind, writeFileIn } from "./folder-files"

/** A template as its folder holds it, and as `push` sends it. */
export interface LocalTemplate {
  name: string
  /** What template.json has, without what is empty. Layouts are named, since ids differ by project. */
  settings: Settings
  /** Texts of email by the name of their file: `email.html`, `email.de.txt`. */
  bodies: Record<string, string>
  /** Values for checks. They are not sent. */
  example: Fields
}

type Fields = Record<string, unknown>

interface Settings extends Fields {
  layout?: string
  locales?: Record<string, Fields>
}

const NAME = /^[a-z0-9][a-z0-9_.-]{0,99}$/
const LOCALE = /^[A-Za-z]{2,8}(?:-[A-Za-z0-9]{1,8}){0,4}$/
const BODY = /^email(?:\.([A-Za-z0-9-]+))?\.(?:html|txt)$/
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
  return names.map((name) => readTemplate(join(folder, name), name))
}

/** A link to a folder with a template would be one, so it is refused. Other links are nobody's business. */
function isTemplate(place: string): boolean {
  const kind = kindOf(place)
  if (kind === "link" && existsSync(join(place, SETTINGS))) requireKind(place, "folder")
  return kind === "folder" && kindOf(join(place, SETTINGS)) !== "missing"
}

function readTemplate(place: string, name: string): LocalTemplate {
  if (!NAME.test(name)) {
    throw invalid(place, "is no name of a template; use a-z, 0-9, _, . and -, at most 100 of them")
  }
  const path = join(place, SETTINGS)
  const fields = readObject(path)
  const unknown = Object.keys(fields).find((field) => !FIELDS.includes(field))
  if (unknown !== undefined) {
    throw invalid(path, `has the unknown field ${unknown}; the fields are ${FIELDS.join(", ")}`)
  }
  const bodies = readBodies(place)
  const settings = settingsOf(fields, bodies, path)
  const example = requireKind(join(place, EXAMPLE), "file") ? readObject(join(place, EXAMPLE)) : {}
  return { name, settings, bodies, example }
}

/** A field that is written wrong would be missing without a word. */
const FIELDS = [
  ...["description", "layout", "locale", "tags", "variables"],
  ...["subject", "preheader", "channels", "locales"],
]

/** The last line end of a file is not part of the text. */
function readBodies(place: string): Record<string, string> {
  const bodies: Record<string, string> = {}
  for (const file of namesIn(place)) {
    if (!BODY.test(file)) continue
    const locale = localeOf(file)
    if (locale !== "" && !LOCALE.test(locale)) {
      throw invalid(join(place, file), `names no language: ${locale}`)
    }
    bodies[file] = readFileIn(join(place, file), MOST_BYTES).replace(/\r?\n$/, "")
  }
  return bodies
}

/** "" is the template's own. */
const localeOf = (file: string) => BODY.exec(file)?.[1] ?? ""

function readObject(path: string): Fields {
  const text = readFileIn(path, MOST_BYTES)
  try {
    return objectOf(JSON.parse(text), path)
  } catch (error) {
    if (error instanceof Failure) throw error
    throw invalid(path, `is not JSON: ${(error as Error).message}`)
  }
}

/** In one order and without what is so by default, so that a short way to write them is the same. */
function settingsOf(fields: Fields, bodies: Record<string, string>, path: string): Settings {
  const { description, layout, locale, tags, variables } = fields
  const named = objectOf(fields.locales, `${path}: locales`)
  const locales = new Set([...Object.keys(named), ...Object.keys(bodies).map(localeOf)])
  locales.delete("")
  const texts = [...locales].sort().map((one) => {
    return [one, textsOf(objectOf(named[one], `${path}: locales.${one}`))]
  })
  return withoutNothing({
    ...{ description, layout, locale },
    tags: Array.isArray(tags) ? tags.toSorted() : tags, // they have no order that counts
    variables: Array.isArray(variables) ? variables.map(variableOf) : variables,
    ...textsOf(fields),
    locales: Object.fromEntries(texts),
  })
}

/** Texts that are no file of their own; `channels` are push, sms and in_app. */
function textsOf({ subject, preheader, channels }: Fields): Fields {
  const all = Object.entries(objectOf(channels, "channels"))
  const plain = all.map(([name, texts]) => [name, withoutNothing(objectOf(texts, name))])
  return withoutNothing({ subject, preheader, channels: Object.fromEntries(plain) })
}

function variableOf(variable: unknown) {
  if (typeof variable !== "object" || variable === null) return variable
  const { required, ...rest } = variable as Fields
  return { ...withoutNothing(rest), ...(required === true && { required }) }
}

function objectOf(value: unknown, where: string): Fields {
  if (value === undefined || value === null) return {}
  if (typeof value === "object" && !Array.isArray(value)) return value as Fields
  throw invalid(where, "must be a JSON object")
}

/** Without null, empty lists and empty objects: a folder says what a template has. */
const withoutNothing = (fields: object): Fields =>
  Object.fromEntries(
    Object.entries(fields).filter(([, value]) =>
      typeof value === "object" ? Object.keys(value ?? {}).length > 0 : value !== undefined,
    ),
  )

const invalid = (where: string, what: string) =>
  new Failure(exits.invalid, "invalid_template", `${where} ${what}.`)

/** The same of a template that a server holds. */
export function localForm(
  template: Components["Template"],
  nameOf: (id: string) => string,
): LocalTemplate {
  const { name, layout_id, locales } = template
  const bodies: Record<string, string> = {}
  const shown = (texts: ShownTexts, suffix: string): Fields => {
    const { email, ...channels } = texts.channels
    if (texts.html !== null) bodies[`email${suffix}.html`] = texts.html
    if (texts.text !== null) bodies[`email${suffix}.txt`] = texts.text
    return { subject: texts.subject, preheader: email?.preheader, channels }
  }
  const fields = {
    ...template,
    ...shown(template, ""),
    layout: layout_id && nameOf(layout_id),
    locales: Object.fromEntries(locales.map((one) => [one.locale, shown(one, `.${one.locale}`)])),
  }
  return { name, settings: settingsOf(fields, bodies, name), bodies, example: {} }
}

type ShownTexts = Pick<Components["Template"], "subject" | "html" | "text" | "channels">

/**
 * Writes a template into its folder below `folder`; bodies that it has no more go. Returns whether anything
 * changed. Throws with exit 66 for a link in its way: what it leads to is not written over.
 */
export function writeTemplate(folder: string, template: LocalTemplate): boolean {
  requireNames(template)
  const place = join(folder, template.name)
  makeFolder(place)
  const files = filesOf(template)
  for (const file of files.keys()) requireKind(join(place, file), "file")
  const stale = namesIn(place).filter((file) => BODY.test(file) && !files.has(file))
  for (const file of stale) rmSync(join(place, file))
  let changed = stale.length > 0
  for (const [file, text] of files) {
    const path = join(place, file)
    if (requireKind(path, "file") && readFileIn(path, MOST_BYTES) === text) continue
    writeFileIn(path, text)
    changed = true
  }
  return changed
}

/** What a server says becomes names of files, and must not lead out of the folder. */
function requireNames({ name, settings, bodies }: LocalTemplate) {
  const wrong = Object.keys(settings.locales ?? {}).find((locale) => !LOCALE.test(locale))
  const file = Object.keys(bodies).find((one) => !BODY.test(one))
  if (!NAME.test(name)) throw invalid(JSON.stringify(name), "is no name of a template")
  if (wrong !== undefined || file !== undefined)
    throw invalid(JSON.stringify(wrong ?? file), `of ${name} names no language`)
}

/** What the folder of a template holds, by file name, but for its example. */
export const filesOf = ({ bodies, settings }: LocalTemplate): Map<string, string> =>
  new Map([
    ...Object.entries(bodies).map(([file, text]) => [file, `${text}\n`] as const),
    [SETTINGS, `${JSON.stringify(settings, null, 2)}\n`],
  ])

/** The body of POST and PUT /v1/templates. `idOf` gives the id of a layout by its name. */
export function inputOf(template: LocalTemplate, idOf: (name: string) => string) {
  const { layout, locales = {}, ...settings } = template.settings
  const inLanguage = ({ subject, preheader, channels, ...rest }: Fields, suffix: string) => {
    const [html, text] = [`email${suffix}.html`, `email${suffix}.txt`]
    const bodies = { html: template.bodies[html], text: template.bodies[text] }
    const email = withoutNothing({ subject, preheader, ...bodies })
    const all = withoutNothing({ email, ...objectOf(channels, "channels") })
    return { ...rest, ...withoutNothing({ channels: all }) }
  }
  const others = Object.entries(locales).map(([one, texts]) => [one, inLanguage(texts, `.${one}`)])
  return {
    name: template.name,
    ...inLanguage(settings, ""),
    ...(layout !== undefined && { layout_id: idOf(layout) }),
    ...withoutNothing({ locales: Object.fromEntries(others) }),
  }
}

/** Templates in an order in which each comes behind its layout and its partials. */
export function inOrder(templates: LocalTemplate[]): LocalTemplate[] {
  const byName = new Map(templates.map((one) => [one.name, one]))
  const ordered = new Set<LocalTemplate>()
  const open = new Set<LocalTemplate>()
  const visit = (one: LocalTemplate | undefined) => {
    if (!one || open.has(one)) return // a circle is the server's to refuse
    open.add(one)
    for (const name of needsOf(one)) visit(byName.get(name))
    ordered.add(one)
  }
  for (const one of templates) visit(one)
  return [...ordered]
}

const PARTIAL = /\{\{~?#?>\s*["']?([a-z0-9][a-z0-9_.-]*)/g

function needsOf({ settings, bodies }: LocalTemplate): string[] {
  const texts = JSON.stringify([settings, bodies])
  const partials = [...texts.matchAll(PARTIAL)].flatMap(([, name]) => name ?? [])
  return settings.layout === undefined ? partials : [settings.layout, ...partials]
}
