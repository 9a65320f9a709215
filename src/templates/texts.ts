import type { ChannelTexts, TemplateContent } from "./tables"

export type ChannelKey = keyof ChannelTexts

/** What a text is escaped for. */
export type TextMode = "html" | "text"

/** One Handlebars text of a template. */
export interface TemplateText {
  /** Its path in a request: `html`, `channels.sms.body`, `locales.de.subject`. */
  field: string
  /** Its name in its channel: `html`, `title`, `data.order`. */
  part: string
  mode: TextMode
  source: string
}

const FLAT = new Set(["subject", "html", "text"])

/** All texts of a template, those of other languages last. */
export function textsOf({
  channels,
  locales,
}: Pick<TemplateContent, "channels" | "locales">): TemplateText[] {
  const others = Object.entries(locales).flatMap(([locale, texts]) =>
    allTexts(texts, `locales.${locale}.`),
  )
  return [...allTexts(channels, ""), ...others]
}

const allTexts = (channels: ChannelTexts, prefix: string): TemplateText[] =>
  (Object.keys(channels) as ChannelKey[]).flatMap((channel) =>
    channelTexts(channels, channel, prefix),
  )

/** The texts of one channel; none where the template does not have it. */
export function channelTexts(
  channels: ChannelTexts,
  channel: ChannelKey,
  prefix = "",
): TemplateText[] {
  const texts: object = channels[channel] ?? {}
  return flattened(texts).map(([part, source]) => {
    const is_flat = channel === "email" && FLAT.has(part)
    const field = `${prefix}${is_flat ? part : `channels.${channel}.${part}`}`
    return { field, part, mode: part === "html" ? "html" : "text", source }
  })
}

const flattened = (texts: object): [string, string][] =>
  Object.entries(texts).flatMap(([part, value]): [string, string][] => {
    if (typeof value === "string") return [[part, value]]
    if (typeof value !== "object" || value === null) return []
    return flattened(value).map(([name, text]) => [`${part}.${name}`, text])
  })
