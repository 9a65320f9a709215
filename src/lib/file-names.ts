const MAX_NAME = 255

/** Control characters, quotes, and what turns the reading direction around or cannot be seen. */
const UNSAFE = /[\p{Cc}\u2028\u2029"<>:|?*\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/gu

/**
 * A name under which a stranger's file can be saved anywhere: the last part of a path, one line,
 * without characters that a system or a reader takes for something else, at most 255 bytes. `fallback`
 * where nothing is left.
 */
export function safeFilename(name: string | null, fallback = "attachment"): string {
  const [last = ""] = (name ?? "").split(/[/\\]/).slice(-1)
  const plain = last.toWellFormed().normalize("NFC").replace(UNSAFE, "_")
  const trimmed = shortened(plain.replace(/^[. ]+|[. ]+$/g, ""))
  return /^_*$/.test(trimmed) ? fallback : trimmed
}

/** The end of a name says what it is, so the middle gives way. */
function shortened(name: string): string {
  if (Buffer.byteLength(name) <= MAX_NAME) return name
  const [ending = ""] = /\.[^.]{1,16}$/u.exec(name) ?? []
  const most = MAX_NAME - Buffer.byteLength(ending)
  let begin = ""
  let bytes = 0
  for (const character of name.slice(0, name.length - ending.length)) {
    bytes += Buffer.byteLength(character)
    if (bytes > most) break
    begin += character
  }
  return `${begin}${ending}`
}

/**
 * The value of Content-Disposition for a download (RFC 6266): the name in ASCII for old clients, and
 * as it is for all others.
 */
export function asDownload(filename: string): string {
  const ascii = filename.replace(/[^ -~]/g, "_").replace(/["\\%;]/g, "_")
  return `attachment; filename="${ascii}"; filename*=UTF-8''${extValue(filename)}`
}

/** RFC 8187, 3.2.1: four characters that a URL may hold are no part of such a value. */
const extValue = (text: string) =>
  encodeURIComponent(text).replace(
    /['()*]/g,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  )
