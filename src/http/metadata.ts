import { isExactlyCarried } from "../lib/exact-numbers"
import { isLonger } from "../lib/text"
import type { Problems } from "./problems"

const MOST_KEYS = 50
const LONGEST_KEY = 64
const MOST_BYTES = 16_384

/** Problems with what the caller gives along (contract 00, section 2). */
export function checkMetadata(metadata: object, problems: Problems): void {
  const keys = Object.keys(metadata)
  if (keys.length > MOST_KEYS)
    problems.add("metadata", "too_many", `The metadata must have at most ${MOST_KEYS} keys.`)
  if (keys.some((key) => isLonger(key, LONGEST_KEY))) {
    problems.add(
      "metadata",
      "invalid",
      `A key of the metadata must have at most ${LONGEST_KEY} characters.`,
    )
  }
  if (Buffer.byteLength(JSON.stringify(metadata)) > MOST_BYTES) {
    problems.add(
      "metadata",
      "too_large",
      `The metadata must have at most ${MOST_BYTES} bytes as JSON.`,
    )
  }
  for (const [key, value] of Object.entries(metadata)) {
    if (isExactlyCarried(value)) continue
    const text = "JSON cannot carry this number exactly. Send it as a string."
    problems.add(`metadata.${key}`, "invalid", text)
  }
}
