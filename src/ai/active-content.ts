import { attributesIn, decodeEntities, htmlTokens } from "../lib/html-tokens"
import { TAG } from "./variable-check"

const ELEMENTS = new Set("script iframe frame object embed applet base".split(" "))

/** Values that are not escaped, or that decide what an element is. */
const UNSAFE_TAG = /\{\{~?[{&]|<\/?\{\{/

/** Browsers ignore spaces and control characters in it. */
const UNSAFE_ADDRESS = /^(?:javascript|vbscript|data:text\/html)\b/i

/** The script, frame or unescaped value in a text of a model, for a message. People may write all of these. */
export function activeContent(html: string): string | undefined {
  if (UNSAFE_TAG.test(html)) return "a value that is not escaped"
  for (const token of htmlTokens(html)) {
    if (token.kind !== "tag" || token.closing) continue
    if (ELEMENTS.has(token.name) || token.name.includes("{")) return `<${token.name}>`
    // What is around values and blocks is checked.
    for (const { name, value } of attributesIn(token.attributes.replace(TAG, ""))) {
      const address = decodeEntities(value).replaceAll(/[\p{Cc}\s]/gu, "")
      if (name.startsWith("on") || UNSAFE_ADDRESS.test(address)) return `a script in ${name}`
    }
  }
  return undefined
}
