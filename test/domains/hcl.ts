/** A block of HCL: its labels, its attributes, and the blocks in it. */
export interface HclBlock {
  type: string
  labels: string[]
  attributes: Record<string, HclValue>
  blocks: HclBlock[]
}

/** A reference such as `var.zone_id` is `{ref}`. */
export type HclValue = string | number | { ref: string } | { [name: string]: HclValue }

type Token = { kind: "word" | "text" | "number" | "sign" | "line"; text: string }

/** In a quoted template every other escape, and a bare `${` or `%{`, is an error or something else. */
const TOKENS =
  /(?<blank>[ \t]+)|(?<line>\n)|(?<word>[A-Za-z_][\w-]*(?:\.[A-Za-z_][\w-]*)*)|(?<number>\d+)|(?<text>"(?:[^"\\\n$%]|\\[nrt"\\]|\$\$\{|%%\{|\$(?!\{)|%(?!\{))*")|(?<sign>[{}=])/y

function tokensOf(source: string): Token[] {
  const tokens: Token[] = []
  TOKENS.lastIndex = 0
  while (TOKENS.lastIndex < source.length) {
    const at = TOKENS.lastIndex
    const groups = TOKENS.exec(source)?.groups
    if (!groups) throw new Error(`no HCL at ${at}: ${source.slice(at, at + 40)}`)
    const [kind, text] = Object.entries(groups).find(([, found]) => found !== undefined) ?? []
    if (kind && kind !== "blank") tokens.push({ kind: kind as Token["kind"], text: text ?? "" })
  }
  return tokens
}

/** As strict as the language (HCL 2, native syntax) for what it knows; anything else throws. */
export function readHcl(source: string): HclBlock[] {
  const tokens = tokensOf(source)
  let at = 0
  const kind = () => tokens[at]?.kind
  const take = (wanted: Token["kind"], text?: string): string => {
    const token = tokens[at++]
    if (token?.kind === wanted && (text === undefined || token.text === text)) return token.text
    throw new Error(`${text ?? wanted} expected, and not ${JSON.stringify(token)}`)
  }
  const lines = () => {
    while (kind() === "line") at++
  }
  const endOfLine = () => (at < tokens.length ? take("line") : "")
  const closes = () => tokens[at]?.kind === "sign" && tokens[at]?.text === "}"

  const value = (): HclValue => {
    if (kind() === "text") return unquoted(take("text"))
    if (kind() === "number") return Number(take("number"))
    if (kind() === "word") return { ref: take("word") }
    take("sign", "{")
    return attributesUntilClosed()
  }
  const attribute = (into: Record<string, HclValue>, name: string) => {
    if (Object.hasOwn(into, name)) throw new Error(`${name} twice`)
    take("sign", "=")
    into[name] = value()
  }
  const attributesUntilClosed = () => {
    const found: Record<string, HclValue> = {}
    for (lines(); !closes(); lines()) {
      attribute(found, take("word"))
      endOfLine()
    }
    take("sign", "}")
    return found
  }
  const block = (type: string): HclBlock => {
    const made: HclBlock = { type, labels: [], attributes: {}, blocks: [] }
    while (kind() === "text") made.labels.push(unquoted(take("text")))
    take("sign", "{")
    take("line")
    for (lines(); !closes(); lines()) {
      const name = take("word")
      if (tokens[at]?.text === "=") attribute(made.attributes, name)
      else made.blocks.push(block(name))
      endOfLine()
    }
    take("sign", "}")
    return made
  }

  const found: HclBlock[] = []
  for (lines(); at < tokens.length; lines()) {
    found.push(block(take("word")))
    endOfLine()
  }
  return found
}

/** The escapes that remain are JSON's, too. */
const unquoted = (text: string): string =>
  (JSON.parse(text) as string).replaceAll("$${", "${").replaceAll("%%{", "%{")
