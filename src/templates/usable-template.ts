import { createHash } from "node:crypto"
import { fail } from "../core/errors"
import { AUDIENCE_CHANNELS } from "../lib/preferences"
import { cached } from "../store/cached"
import type { Reader } from "../store/store"
import type { TemplateSources } from "./render-templates-task"
import type { ChannelTexts, TemplateContent, TemplateVariable } from "./tables"
import type { KeyedSources } from "./template-renderer"
import {
  type ChannelKey,
  channelTexts,
  type IncludedTemplates,
  included,
  inLocale,
} from "./template-sources"
import { findNamed } from "./templates"
import { invalidTemplate } from "./validate-template"
import { findVersion } from "./writing"

/** One channel of a template in one language, ready to be rendered. */
export interface UsableTemplate extends KeyedSources {
  template: { id: string; name: string; version: number }
  channel: ChannelKey
  /** Names that the texts use, and those of what they include. */
  names: string[]
}

/** Which texts of a template are wanted. */
export interface WantedTexts {
  /** Its id or its name. */
  template: string
  /** Undefined: the first that the template has, email before the others. */
  channel?: ChannelKey | undefined
  locale?: string | undefined
  /** Undefined: the published one. */
  version?: number | undefined
  /** Without a published version the newest one is taken, and an archived template is no mistake. */
  preview?: boolean
}

/** How long another node may still use the version before. */
const RECENT_MS = 1000
const MOST_REMEMBERED = 300
const DEFAULT_LOCALE = "en"
const DEFAULT_TIMEZONE = "UTC"

const remembered = cached<UsableTemplate>({
  tables: ["templates", "template_versions"],
  most: MOST_REMEMBERED,
})

/**
 * Finds a template with all that it includes. Throws 404 `template_not_found`, 404 `not_found` for a
 * version that it does not have, and 422 `invalid_template` where something that it includes is missing.
 */
export async function usableTemplate(
  db: Reader,
  project_id: string,
  wanted: WantedTexts,
): Promise<UsableTemplate> {
  const { template, channel, locale, version, preview } = wanted
  const key = JSON.stringify([project_id, template, channel, locale, version, preview])
  return remembered(db, key, () => read(db, project_id, wanted), RECENT_MS)
}

async function read(db: Reader, project_id: string, wanted: WantedTexts): Promise<UsableTemplate> {
  const row = await findNamed(db, project_id, wanted.template)
  if (row.status === "archived" && !wanted.preview) {
    fail("template_not_found", `The template ${row.name} is archived. Publish it again.`, {
      reason: "archived",
      id: row.id,
    })
  }
  const version =
    wanted.version ?? row.published_version ?? (wanted.preview ? row.version : undefined)
  if (version === undefined) {
    return fail("template_not_found", `The template ${row.name} is a draft. Publish it first.`, {
      reason: "not_published",
      id: row.id,
    })
  }
  const { content } = await findVersion(db, row, version)
  const template = { id: row.id, name: row.name, version }
  return usableTexts(db, project_id, { ...content, ...template }, wanted)
}

/** Texts with all that they are made of, whether or not they are stored. */
type TextsToUse = TemplateContent & { id: string | null; name: string; version: number }

interface TextsOfChannel extends Pick<WantedTexts, "channel"> {
  locale?: string | null | undefined
}

/** As `usableTemplate`, for texts at hand. */
export async function usableTexts(
  db: Reader,
  project_id: string,
  texts: TextsToUse,
  { channel: asked, locale = null }: TextsOfChannel,
): Promise<UsableTemplate> {
  const { id, name, version } = texts
  const found = await included(db, project_id, texts)
  if ("missing" in found) throw cannotInclude(found.missing, found.reason)
  const channels = inLocale(texts, locale)
  const channel = asked ?? firstOf(channels)
  const own = channelTexts(channels, channel)
  if (own.length === 0) {
    const message = `The template ${name} has no texts for ${channel}.`
    return fail("template_render_failed", message, { missing: [], reason: "no_channel", channel })
  }
  const others = [...found.layouts, ...found.partials.values()]
  // What an included template declares holds where the template itself says nothing.
  const all = [texts, ...others.map(({ content }) => content)]
  const sources: TemplateSources = {
    texts: own,
    ...around(found, channel, locale),
    variables: firstOfEachKey(all.flatMap(({ variables }) => variables)),
    locale: locale ?? texts.locale ?? DEFAULT_LOCALE,
    timezone: DEFAULT_TIMEZONE,
  }
  const names = all.flatMap(({ detected_variables }) => detected_variables)
  return { template: { id: id ?? "", name, version }, channel, names, ...keyed(sources) }
}

/** Sources of the same content have the same key. */
export const keyed = (sources: TemplateSources): KeyedSources => ({
  key: createHash("sha256").update(JSON.stringify(sources)).digest("base64url"),
  sources,
})

const firstOf = (channels: ChannelTexts): ChannelKey =>
  AUDIENCE_CHANNELS.find((channel) => channels[channel]) ?? "email"

/** An included template gives the texts of the channel, and behind them those of its email. */
function around(
  { layouts, partials }: IncludedTemplates,
  channel: ChannelKey,
  locale: string | null,
) {
  const textsOf = (content: Parameters<typeof inLocale>[0]) => {
    const channels = inLocale(content, locale)
    const own = channelTexts(channels, channel)
    return channel === "email" ? own : [...own, ...channelTexts(channels, "email")]
  }
  return {
    layouts: layouts.map(({ content }) => textsOf(content)),
    partials: Object.fromEntries(
      [...partials].map(([name, { content }]) => [name, textsOf(content)]),
    ),
  }
}

const firstOfEachKey = (all: TemplateVariable[]) =>
  all.filter(({ key }, at) => all.findIndex((other) => other.key === key) === at)

const cannotInclude = (missing: string, reason: "not_found" | "too_deep") => {
  const message =
    reason === "too_deep"
      ? "Templates include each other more than 5 levels deep, or in a circle."
      : `This project has no published template ${missing}, which is included here.`
  return invalidTemplate("body", { reason: "syntax", message, line: null, column: null })
}
