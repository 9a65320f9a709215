import type { Problems } from "../http/problems"

const MOST_HEADERS = 20
const LONGEST_NAME = 64
const LONGEST_VALUE = 1024

/** RFC 9110, 5.6.2. */
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/

/** What a header can carry without anybody reading it in two ways. */
const VISIBLE = /^[\x20-\x7e]*$/

/** What the delivery writes itself, and what would change how the connection works. */
const PROTECTED =
  /^(host|content-.*|transfer-encoding|connection|keep-alive|proxy-.*|te|trailer|upgrade|expect|webhook-.*|x-svc-.*)$/i

/** Problems with custom headers: protected names, too many, what is no header at all. */
export function checkHeaders(headers: Record<string, string>, problems: Problems): void {
  const names = Object.keys(headers)
  if (names.length > MOST_HEADERS) {
    problems.add(
      "headers",
      "too_many",
      `An endpoint can have at most ${MOST_HEADERS} custom headers.`,
    )
    return
  }
  const seen = new Set<string>()
  for (const [name, value] of Object.entries(headers)) {
    if (name.length > LONGEST_NAME || !TOKEN.test(name)) {
      problems.add(
        "headers",
        "invalid",
        `A header name must be 1 to ${LONGEST_NAME} letters, digits and hyphens.`,
      )
      continue
    }
    const path = `headers.${name}`
    if (PROTECTED.test(name))
      problems.add(path, "protected", "Belfry writes this header itself. Leave it out.")
    if (seen.has(name.toLowerCase()))
      problems.add(
        path,
        "duplicate",
        "This header is given twice. Upper and lower case make no difference.",
      )
    if (value.length > LONGEST_VALUE || !VISIBLE.test(value)) {
      const text = `The value must be one line of at most ${LONGEST_VALUE} visible ASCII characters.`
      problems.add(path, "invalid", text)
    }
    seen.add(name.toLowerCase())
  }
}
