import { countCharacters } from "./text"

const LEAST_CHARACTERS = 8

/** Longer than any typed password; it bounds the work of hashing. */
export const MOST_PASSWORD_CHARACTERS = 1024

const RULES: [name: string, met: (text: string) => boolean][] = [
  ["length", (text) => countCharacters(text) >= LEAST_CHARACTERS],
  ["upper", (text) => /\p{Lu}/u.test(text)],
  ["lower", (text) => /\p{Ll}/u.test(text)],
  ["digit", (text) => /\p{Nd}/u.test(text)],
  ["symbol", (text) => /[^\p{L}\p{N}\p{M}]/u.test(text)],
]

/** What a password lacks: `length` (8 characters), `upper`, `lower`, `digit`, `symbol`. */
export const lacking = (password: string): string[] =>
  RULES.filter(([, met]) => !met(password)).map(([name]) => name)
