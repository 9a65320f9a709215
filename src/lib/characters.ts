/**
 * Lengths of text as people count them: Unicode code points, as `maxLength` of JSON Schema does.
 * An emoji outside the basic plane is one character, although JavaScript stores it in two units.
 */
export function countCharacters(text: string): number {
  let count = 0
  for (const _ of text) count++
  return count
}

/** Most texts are short enough in any unit, so they are not walked through. */
export const isLonger = (text: string, most: number): boolean =>
  text.length > most && countCharacters(text) > most
