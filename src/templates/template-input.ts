import type { Static } from "@sinclair/typebox"
import { invalid, Problems } from "../core/errors"
import { isUuid } from "../core/ids"
import { check, settleNames } from "../http/validate"
import { isLocale } from "../lib/locale"
import { AUDIENCE_CHANNELS } from "../lib/preferences"
import { TemplateInput, TemplatePatch } from "./schemas"
import type { ChannelTexts, EmailTexts, TemplateContent, TemplateVariable } from "./tables"
import { isOfType } from "./variables"

/** What a template says, without what follows from it. */
export type TemplateTexts = Omit<TemplateContent, "detected_variables" | "partials">

/** A channel that is null goes away; one that is absent stays as it is. */
type ChannelChanges = { [Name in keyof ChannelTexts]: ChannelTexts[Name] | null }

/** The fields of a request. An absent field stays as it is. */
export interface TemplateChanges {
  name?: string
  description?: string | null
  tags?: string[]
  channels: ChannelChanges
  /** Fields of the channel email, beside those that stay. */
  email: Partial<EmailTexts>
  variables?: TemplateVariable[]
  layout_id?: string | null
  locale?: string | null
  locales?: Record<string, ChannelTexts>
  draft: boolean | undefined
}

export interface NewTemplate extends TemplateChanges {
  name: string
}

/** Reads a whole template: of a new one, and of one that is replaced. */
export function readTemplate(body: unknown, problems: Problems): NewTemplate {
  const changes = read(TemplateInput, body, problems)
  const wanted = { ...changes, name: changes.name ?? "" }
  if (!problems.any && Object.keys(afterChanges(wanted).channels).length === 0) {
    problems.add("html", "required", NO_TEXTS)
  }
  return wanted
}

export const readTemplateChanges = (body: unknown, problems: Problems): TemplateChanges =>
  read(TemplatePatch, body, problems)

/** Reads texts that are not to be stored, at least one. */
export function readDraft(template: unknown, problems: Problems): TemplateChanges {
  const own = new Problems("template.")
  const changes = read(TemplatePatch, template, own)
  if (!own.any && Object.keys(afterChanges(changes).channels).length === 0) {
    own.add("html", "required", NO_TEXTS)
  }
  for (const { path, code, message } of own.list) problems.add(path, code, message)
  return changes
}

const NO_TEXTS = "A template needs html, text, or the texts of a channel."

type Input = Partial<Static<typeof TemplateInput>>

function read(
  schema: typeof TemplateInput | typeof TemplatePatch,
  body: unknown,
  problems: Problems,
): TemplateChanges {
  const settled = withFallbacks(body, problems)
  check(schema, settled, problems)
  if (problems.any) return { channels: {}, email: {}, draft: undefined }
  const given = settled as Input
  refuseNul(given, "", problems)
  const { description, tags, layout_id, locale, locales, variables, draft } = given
  if (layout_id && !isUuid(layout_id)) {
    problems.add("layout_id", "invalid", "The value must be the id of a template of this project.")
  }
  const named = { locale: locale ? [locale] : [], locales: Object.keys(locales ?? {}) }
  for (const [path, tagsOf] of Object.entries(named)) {
    for (const tag of tagsOf) if (!isLocale(tag)) problems.add(path, "invalid", notLocale(tag))
  }
  return {
    ...readChannels(given, "", problems),
    ...(given.name !== undefined && { name: given.name }),
    ...(description !== undefined && { description }),
    ...(tags && { tags: [...new Set(tags)] }),
    ...(layout_id !== undefined && { layout_id }),
    ...(locale !== undefined && { locale }),
    ...(variables && { variables: readVariables(variables, problems) }),
    ...(locales && { locales: readLocales(locales, problems) }),
    draft,
  }
}

const notLocale = (tag: string) => `"${tag}" is not a language tag of BCP 47, such as en or de-AT.`

/** `fallback_value` is the same as `fallback`; the common reader knows only names at the top. */
function withFallbacks(body: unknown, problems: Problems): unknown {
  const { variables } = (body ?? {}) as { variables?: unknown }
  if (!Array.isArray(variables)) return body
  const { items } = TemplateInput.properties.variables
  return {
    ...(body as object),
    variables: variables.map((one) => settleNames(items, one, problems)),
  }
}

/** A database cannot store NUL, and no text needs it. */
function refuseNul(value: unknown, path: string, problems: Problems) {
  if (typeof value === "string" && (value.includes("\0") || !value.isWellFormed())) {
    problems.add(path, "invalid", "The text must not contain NUL or half of a surrogate pair.")
  }
  if (typeof value !== "object" || value === null) return
  for (const [name, inner] of Object.entries(value)) {
    if (name.includes("\0") || !name.isWellFormed()) refuseNul(name, path || "body", problems)
    refuseNul(inner, path === "" ? name : `${path}.${name}`, problems)
  }
}

type TextsInput = Pick<Input, "subject" | "html" | "text" | "channels">

/** The flat fields are those of the channel email: given twice, they must be equal. */
function readChannels(given: TextsInput, prefix: string, problems: Problems) {
  const channels: ChannelChanges = {}
  for (const name of AUDIENCE_CHANNELS) {
    const texts = given.channels?.[name]
    if (texts === undefined) continue
    Object.assign(channels, { [name]: texts && { ...BLANK[name], ...texts } })
  }
  const email: Partial<EmailTexts> = {}
  for (const name of ["subject", "html", "text"] as const) {
    const value = given[name]
    if (value === undefined) continue
    const other = given.channels?.email?.[name]
    if (other !== undefined && other !== value) {
      const message = `${name} and channels.email.${name} say the same. Give one of them.`
      problems.add(`${prefix}${name}`, "invalid", message)
    }
    email[name] = value
  }
  return { channels, email }
}

const BLANK = {
  email: { subject: null, html: null, text: null, preheader: null },
  push: { title: "", body: "", image_url: null, data: {}, url: null },
  sms: { body: "" },
  in_app: { title: "", body: null, action_url: null, action_label: null },
} satisfies Required<ChannelTexts>

function readLocales(given: NonNullable<Input["locales"]>, problems: Problems) {
  const read = Object.entries(given).map(([tag, texts]) => {
    const changes = readChannels(texts, `locales.${tag}.`, problems)
    return [Intl.getCanonicalLocales(safe(tag))[0] ?? tag, merged({}, changes)] as const
  })
  return Object.fromEntries(read)
}

/** What is no tag was refused already. */
const safe = (tag: string) => (isLocale(tag) ? tag : "en")

function readVariables(given: NonNullable<Input["variables"]>, problems: Problems) {
  const seen = new Set<string>()
  return given.map(({ key, type, required = false, fallback = null, description = null }, at) => {
    const path = `variables.${at}`
    if (!KEY.test(key)) problems.add(`${path}.key`, "invalid", BAD_KEY)
    if (seen.has(key)) problems.add(`${path}.key`, "duplicate", `"${key}" is declared twice.`)
    seen.add(key)
    if (fallback !== null && !isOfType(type, fallback)) {
      problems.add(`${path}.fallback`, "invalid", `The fallback is not of the type ${type}.`)
    }
    return { key, type, required, fallback, description } satisfies TemplateVariable
  })
}

/** A name that Handlebars reads without brackets; a dot goes into an object. */
export const KEY = /^[\p{L}_$][\p{L}\p{N}_$-]*(\.[\p{L}\p{N}_$-]+)*$/u
const BAD_KEY = "A key must have letters, digits, _ and -, with dots between the names of objects."

/** The texts of a template after these changes. */
export function afterChanges(
  changes: TemplateChanges,
  before: TemplateTexts = EMPTY,
): TemplateTexts {
  return {
    channels: merged(before.channels, changes),
    variables: changes.variables ?? before.variables,
    layout_id: changes.layout_id === undefined ? before.layout_id : changes.layout_id,
    locale: changes.locale === undefined ? before.locale : changes.locale,
    locales: changes.locales ?? before.locales,
  }
}

const EMPTY: TemplateTexts = {
  channels: {},
  variables: [],
  layout_id: null,
  locale: null,
  locales: {},
}

function merged(
  before: ChannelTexts,
  { channels, email }: Pick<TemplateChanges, "channels" | "email">,
): ChannelTexts {
  const all = { ...before, ...channels }
  const own = { ...BLANK.email, ...all.email, ...email }
  const has_email = Object.values(own).some((text) => text !== null)
  const kept = Object.entries({ ...all, email: has_email ? own : null })
  return Object.fromEntries(kept.filter(([, texts]) => texts != null)) as ChannelTexts
}

/** Throws 422 where a change would leave nothing to send. */
export function requireTexts({ channels }: TemplateTexts): void {
  if (Object.keys(channels).length > 0) return
  throw invalid("html", "required", NO_TEXTS)
}
