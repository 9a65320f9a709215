import { readFileSync } from "node:fs"
import { join } from "node:path"
import { Glob } from "bun"
import { root } from "./migrations"
import { sources } from "./sources"

/** One text that people read, and where it stands. */
export interface Text {
  path: string
  line: number
  text: string
}

const MOST_WORDS = 25

/** A sentence needs a subject that a reader finds at once: a noun, or "they". */
const HIDDEN_SUBJECT = /\b(?:who|whoever|whom|he|him|his|himself)\b/i

/** Words by which a thing seems to act, or nobody does. A reader wants the actor: Belfry, a command, a person. */
const HIDDEN_ACTOR =
  /\b(?:is|are|was|were|be|been) told\b|\b(?:stands?|stood)\b(?!-| for\b)|\b(?:goes|gone)\b|\balong(?=[.,;:]|$| as\b)|\b(?:do|does|did) not count(?=[.,;:]|$| (?:as|for|towards?|against|in|because)\b)|\bcounts (?:as|for|towards?|against)\b|(?<!\b(?:its|the|their|and|or|of|with|only) )\bcounts(?=[.:;]|$)|^(?:So (?:is|are|do|does)|Of)\b/

/** Fewer words than these are a name, a value or a part of a statement. */
const LEAST_WORDS = 4

/** What is wrong with the English of the project: one line a finding. */
export function findings(): string[] {
  const texts = [...textsOfCode(), ...textsOfDocs()].flatMap(({ path, line, text }) =>
    sentencesOf(text).flatMap((sentence) =>
      complaintsOf(sentence).map((why) => `${path}:${line}: ${why}: ${sentence}`),
    ),
  )
  const comments = sources.flatMap(({ path, text }) =>
    commentsOf(text).flatMap((comment) => {
      const hidden = HIDDEN_SUBJECT.exec(comment.text)?.[0]
      return hidden ? [`${path}:${comment.line}: name the noun instead of "${hidden}"`] : []
    }),
  )
  return [...texts, ...comments]
}

/** Why a reader may have to read the sentence twice. */
export function complaintsOf(sentence: string): string[] {
  const words = countWords(sentence)
  const hidden = HIDDEN_SUBJECT.exec(sentence)?.[0]
  const idle = HIDDEN_ACTOR.exec(sentence)?.[0]
  return [
    ...(hidden ? [`name the noun instead of "${hidden}"`] : []),
    ...(idle ? [`say who acts, instead of "${idle}"`] : []),
    ...(words > MOST_WORDS ? [`${words} words, at most ${MOST_WORDS}`] : []),
  ]
}

const countWords = (sentence: string) =>
  sentence.split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word)).length

/** A full stop, a question mark or an exclamation mark ends a sentence, and so does an empty line. */
export function sentencesOf(text: string): string[] {
  const whole = text.replaceAll(/\b(?:e\.g|i\.e|etc|vs)\./g, "and so on")
  return whole
    .split(/\n\s*\n|(?<=[.!?]["')\]]*)\s+(?=["'(\p{Lu}\p{N}`…<])|(?<=:)\s*\n/u)
    .map((sentence) => sentence.replaceAll(/\s+/g, " ").trim())
    .filter(Boolean)
}

// --- texts of the code: literals of a few words -------------------------------------------------

/** Statements and styles are literals, too, and nobody reads them as a sentence. */
const NOT_PROSE =
  /\w_\w+ \w+_\w+ \w+|^\s*\(?(?:select|insert|update|delete|with|create|alter|drop|begin|pragma|explain|from|where|and|or|set|on conflict)\b|[{};]\s*$|=>|:root|px;/i

function textsOfCode(): Text[] {
  return sources
    .filter(({ path }) => path !== "src/store/migrations.ts")
    .flatMap(({ path, text }) => {
      const markup = path.endsWith(".tsx") ? markupTextsOf(text) : []
      return [...literalsOf(text), ...markup].map((one) => ({ path, ...one }))
    })
    .filter(({ text }) => countWords(text) >= LEAST_WORDS && !NOT_PROSE.test(text))
    .map((one) => ({ ...one, text: withoutMarkup(one.text) }))
}

const withoutMarkup = (text: string) =>
  text.replaceAll(/<[^<>]*>/g, "\n\n").replaceAll(/`[^`]*`/g, "`code`")

interface Literal {
  line: number
  text: string
}

/** String and template literals of the source; those joined by `+` are one text. */
export function literalsOf(code: string): Literal[] {
  const found: Literal[] = []
  let line = 1
  let joins = false
  for (const [token] of code.matchAll(TOKEN)) {
    const text = textOf(token)
    const last = found.at(-1)
    if (text !== undefined) {
      if (joins && last) last.text += text
      else found.push({ line, text })
      joins = false
    } else if (/\S/.test(token) && !token.startsWith("/")) joins = token === "+"
    line += token.split("\n").length - 1
  }
  return found
}

/** Texts between the elements of a page. */
export function markupTextsOf(code: string): Literal[] {
  const plain = code.replaceAll(/\/\*[\s\S]*?\*\/|\/\/ .*/g, (comment) =>
    comment.replaceAll(/./g, " "),
  )
  return [...plain.matchAll(/(?<![=\s])[>}]([^<>={}();]*\w[^<>={}();]*)(?=[<{])/g)].map((found) => {
    const [, text = ""] = found
    return { line: plain.slice(0, found.index).split("\n").length, text }
  })
}

/** Comments of the source, without the code in them. */
export function commentsOf(code: string): Literal[] {
  const found: Literal[] = []
  let line = 1
  for (const [token] of code.matchAll(TOKEN)) {
    if (/^\/[/*]/.test(token)) found.push({ line, text: token.replaceAll(/`[^`]*`/g, "") })
    line += token.split("\n").length - 1
  }
  return found
}

/** Comments, regular expressions behind what can begin one, literals, and each other character. */
const TOKEN =
  /\/\*[\s\S]*?\*\/|\/\/.*|(?<=[(,=:[!&|?{;]\s*)\/(?:\\.|\[(?:\\.|[^\]\n])*\]|[^/\\\n[])+\/[a-z]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\[\s\S]|\$\{(?:[^{}`]|`[^`]*`|\{[^{}]*\})*\}|[^`\\])*`|[\w$]+|\s+|[\s\S]/g

function textOf(token: string): string | undefined {
  if (!/^["'`]/.test(token) || token.length < 2) return undefined
  const inner = token.slice(1, -1)
  const plain = inner.replaceAll(/\$\{(?:[^{}`]|`[^`]*`|\{[^{}]*\})*\}/g, "X")
  return plain.replaceAll("\\n", "\n").replaceAll(/\\(["'`\\])/g, "$1")
}

// --- texts of the docs ---------------------------------------------------------------------------

function textsOfDocs(): Text[] {
  const paths = ["README.md", "CHANGELOG.md", ...new Glob("docs/**/*.md").scanSync(root)]
  return paths.flatMap((path) => paragraphsOf(path, readFileSync(join(root, path), "utf8")))
}

/** Paragraphs, items of lists, headings and cells of tables; blocks of code are no prose. */
export function paragraphsOf(path: string, markdown: string): Text[] {
  const found: Text[] = []
  let fenced = false
  let open: Text | undefined
  for (const [at, line] of markdown.split("\n").entries()) {
    if (/^\s*```/.test(line)) fenced = !fenced
    const starts = /^\s*(?:[-*] |\d+\. |#|\|)/.test(line)
    if (fenced || /^\s*```/.test(line) || line.trim() === "" || starts) open = undefined
    if (fenced || /^\s*(?:```|$)/.test(line)) continue
    if (line.startsWith("|")) {
      found.push(...line.split("|").map((text) => ({ path, line: at + 1, text: bare(text) })))
      continue
    }
    const text = bare(line.replace(/^\s*(?:[-*] |\d+\. |#+ )/, ""))
    if (open) open.text += ` ${text}`
    else {
      open = { path, line: at + 1, text }
      found.push(open)
      if (line.startsWith("#")) open = undefined // a heading ends with its line
    }
  }
  return found
}

/** A span of code or the target of a link is one word. */
const bare = (text: string) => text.replaceAll(/`[^`]*`/g, "`code`").replaceAll(/\]\([^)]*\)/g, "]")
