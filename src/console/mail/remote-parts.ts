/** What the HTML of a mail would load from other servers; the preview loads none of it. */
export interface RemoteParts {
  images: number
  styles: number
}

/**
 * Counts by the markup, which is enough to tell a person about it. Every repetition has an end, since a mail
 * of half a tag, a hundred thousand times, must not hold up the page.
 */
export function remoteParts(html: string): RemoteParts {
  const visible = withoutComments(html)
  return {
    images: countOf(visible, IMAGE) + countOf(visible, BACKGROUND) + countOf(visible, URL_OF_STYLE),
    styles: countOf(visible, STYLE_SHEET) + countOf(visible, IMPORT),
  }
}

/**
 * The html of a message of this server without the pixel that counts its openings, as `trackedHtml` adds it. Its host
 * may be any, because a domain can have a tracking host of its own.
 */
export const withoutOwnPixel = (html: string): string => html.replace(OWN_PIXEL, "")

const OWN_PIXEL =
  /<img src="https?:\/\/[^\s"'<>]{1,500}\/t\/o\/[\w.-]{1,200}\.gif" width="1" height="1" [^<>]{0,200}>/

const IMAGE =
  /<(?:img|source|input)\b[^<>]{0,2000}?\bsrc(?:set)?\s{0,9}=\s{0,9}["']?\s{0,9}(?:https?:)?\/\//gi
const BACKGROUND = /\bbackground\s{0,9}=\s{0,9}["']?\s{0,9}(?:https?:)?\/\//gi
const URL_OF_STYLE = /\burl\(\s{0,9}["']?\s{0,9}(?:https?:)?\/\//gi
const STYLE_SHEET = /<link\b[^<>]{0,2000}?\brel\s{0,9}=\s{0,9}["']?stylesheet/gi
const IMPORT = /@import\s{1,9}(?:url\(\s{0,9})?["']?\s{0,9}(?:https?:)?\/\//gi

/** A comment without an end goes on to the end of the mail. */
const withoutComments = (html: string): string =>
  html
    .split("-->")
    .map((piece) => piece.split("<!--", 1)[0])
    .join("")

const countOf = (text: string, pattern: RegExp): number => [...text.matchAll(pattern)].length

/** Undefined where nothing is missing. */
export function remoteText({ images, styles }: RemoteParts): string | undefined {
  const parts = [
    ...(images > 0 ? [`${images} remote ${images === 1 ? "image" : "images"}`] : []),
    ...(styles > 0 ? [`${styles} remote ${styles === 1 ? "style sheet" : "style sheets"}`] : []),
  ]
  if (parts.length === 0) return undefined
  const is_one = images + styles === 1
  return `${parts.join(" and ")} ${is_one ? "is" : "are"} not loaded here, so that the sender learns nothing.`
}
