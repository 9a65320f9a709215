/** What everybody tries first, in small letters, without the digits and symbols around it. */
const LINES = [
  "password passwort passw passwd pass qwerty qwertz azerty qwertyuiop asdf asdfgh asdfghjkl",
  "zxcv zxcvbn zxcvbnm qaz wsx qazwsx abc abcd abcde abcdef abcdefg aaa letmein welcome",
  "willkommen admin administrator root login user guest test testing changeme change secret",
  "hello hallo master monkey dragon shadow sunshine princess football baseball superman batman",
  "iloveyou love trustno michael jordan ashley jennifer daniel thomas charlie summer winter",
  "spring autumn sommer january monday company default temp temporary sample example demo",
  "computer internet access freedom whatever starwars pokemon hunter killer soccer hockey",
  "flower cheese contrasena senha motdepasse bonjour parola",
]

const WORDS = new Set(LINES.flatMap((line) => line.split(" ")))

/** Letters that people write as digits and symbols. */
const LETTERS: Record<string, string> = {
  "0": "o",
  "1": "i",
  "3": "e",
  "4": "a",
  "5": "s",
  "7": "t",
  "@": "a",
  $: "s",
  "!": "i",
}

/**
 * Whether a password is one of the most used ones: a word of the list with digits and symbols around
 * it, also where some stand for letters. `P@ssw0rd2024!` is one.
 */
export function isCommon(password: string): boolean {
  const begin = password
    .normalize("NFKC")
    .toLowerCase()
    .replace(/[^\p{L}]+$/u, "")
  return [begin, begin.replace(/^[^\p{L}]+/u, "")].some((word) => WORDS.has(lettersOf(word)))
}

const lettersOf = (text: string) => text.replace(/[013457@$!]/g, (sign) => LETTERS[sign] ?? sign)
