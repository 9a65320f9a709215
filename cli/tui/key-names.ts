/** What ink says of a key; each is true or left out. */
export interface InkKey {
  upArrow?: boolean
  downArrow?: boolean
  leftArrow?: boolean
  rightArrow?: boolean
  pageUp?: boolean
  pageDown?: boolean
  home?: boolean
  end?: boolean
  return?: boolean
  escape?: boolean
  tab?: boolean
  backspace?: boolean
  delete?: boolean
  ctrl?: boolean
  meta?: boolean
}

const named: [keyof InkKey, string][] = [
  ["upArrow", "<up>"],
  ["downArrow", "<down>"],
  ["leftArrow", "<left>"],
  ["rightArrow", "<right>"],
  ["pageUp", "<pageup>"],
  ["pageDown", "<pagedown>"],
  ["home", "<home>"],
  ["end", "<end>"],
  ["return", "<enter>"],
  ["escape", "<escape>"],
  ["tab", "<tab>"],
  ["backspace", "<backspace>"],
  ["delete", "<delete>"],
]

const controls: Partial<Record<string, string>> = {
  "\r": "<enter>",
  "\n": "<enter>",
  "\t": "<tab>",
  "\u001b": "<escape>",
  "\u007f": "<backspace>",
  "\b": "<backspace>",
  "\u0003": "<ctrl-c>",
  "\u000c": "<ctrl-l>",
  "\u0015": "<ctrl-u>",
  "\u0017": "<ctrl-w>",
}

/**
 * The keys of one piece of input, by the names that `press` knows. Fast typing, or a paste,
 * arrives as several characters at once; those that are no text and no key are left out.
 */
export function keysFrom(input: string, key: InkKey): string[] {
  const name = named.find(([flag]) => key[flag])?.[1]
  if (name) return [name]
  if (key.ctrl) return [`<ctrl-${input}>`]
  if (key.meta) return [...input].length === 1 ? [`<alt-${input}>`] : []
  return [...input].flatMap((one) => controls[one] ?? (/\p{Cc}/u.test(one) ? [] : [one]))
}
