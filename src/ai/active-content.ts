import { decodeEntities, htmlTokens } from "../lib/html-tokens"

/** What runs, embeds, sends what people type, or can be drawn so that it does. */
const ELEMENT = /<(script|iframe|frame|object|embed|applet|base|form|svg|math)\b/i

/** A remark, a block or an escaped value of Handlebars. */
const TAG = /\{\{(?!~?&)[^{}]*\}\}/g

/** What is left of others, and one that decides what an element is. */
const UNSAFE_TAG = /\{\{|\{\0|<\/?[\w:-]*\0/

const EVENT = /[\s"'/](on\w{3,})\s*=/i

/** An address that is a script or a document, or one that the reader is led to at once. */
const UNSAFE_ADDRESS =
  /http-equiv=["']?refresh|(?<!\w)(?:(?:java|vb)script(?::|&colon;)|data:(?!image\/(?:png|gif|jpe?g|webp)\b)[\w-]+\/)/i

/** Browsers read a number without its semicolon, and ignore spaces and control characters in an address. */
const addressesIn = (part: string) =>
  decodeEntities(part.replace(/&#(x[\da-f]+|\d+);?/gi, "&#$1;")).replace(UNREAD, "")
const UNREAD = /[\p{Cc}\s]|&(?:tab|newline);/giu

/**
 * Names the first script, frame or unescaped value in html that a model wrote, for an error. Templates of people may
 * hold them. Undefined where there is none.
 */
export function activeContent(html: string): string | undefined {
  const source = html.replace(TAG, "\0")
  if (UNSAFE_TAG.test(source)) return "a value that is not escaped"
  for (const { kind, start, end } of htmlTokens(source)) {
    if (kind === "text") continue
    const part = source.slice(start, end).replaceAll("\0", "")
    const element = ELEMENT.exec(part)?.[1]
    if (element) return `<${element}>`
    const event = EVENT.exec(part)?.[1]
    if (event) return `a script in ${event}`
    if (UNSAFE_ADDRESS.test(addressesIn(part))) return "an address that is a script"
  }
  return undefined
}
