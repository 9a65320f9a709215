/**
 * The address where a message may lead or whose picture it may show: http, https, or a path of this site. Undefined
 * for every other text. A browser drops tabs and line ends, and reads `/\host` as another host.
 */
export function safeLink(text: string | null | undefined): string | undefined {
  if (!text || /[\x00-\x1f\x7f]/.test(text)) return undefined
  if (/^\/(?![/\\])/.test(text)) return text
  return /^https?:\/\//i.test(text) && URL.canParse(text) ? text : undefined
}
