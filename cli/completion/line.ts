/** Where bash breaks words beside spaces: what it has typed already must not come again. */
const BREAKS = /[:=]/g

/**
 * The words of an unfinished line, as a shell would split it; the last one is where the cursor
 * stands. Bash takes only what follows `typed_before` characters of it for its last word.
 */
export function splitLine(line: string): { words: string[]; typed_before: number } {
  const words: string[] = []
  let word = ""
  let is_word = false
  let quote = ""
  for (let at = 0; at < line.length; at++) {
    const character = line[at] ?? ""
    if (quote !== "") {
      if (character === quote) quote = ""
      else word += character
    } else if (character === '"' || character === "'") {
      quote = character
      is_word = true
    } else if (character === "\\") {
      at += 1
      word += line[at] ?? ""
      is_word = true
    } else if (/\s/.test(character)) {
      if (is_word) words.push(word)
      word = ""
      is_word = false
    } else {
      word += character
      is_word = true
    }
  }
  const typed_before = [...word.matchAll(BREAKS)].at(-1)?.index ?? -1
  return { words: [...words, word], typed_before: typed_before + 1 }
}
