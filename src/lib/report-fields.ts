import { decodeWords } from "./mail-text"

/** The fields of one group, in their order; names in lower case. */
export type ReportGroup = [name: string, value: string][]

const MOST_LINES = 5_000
const MOST_VALUE = 2_000

/**
 * The body of a machine-readable report: groups of fields with an empty line between them, in which
 * long fields are folded (RFC 3464, 2.1; RFC 5965, 3). What is no field is left out. Never throws.
 */
export function reportGroups(text: string): ReportGroup[] {
  const groups: ReportGroup[] = [[]]
  for (const line of text.split(/\r\n|\r|\n/, MOST_LINES)) {
    const group = groups.at(-1) ?? []
    const last = group.at(-1)
    const [, name, value = ""] = FIELD.exec(line) ?? []
    if (line.trim() === "") groups.push([])
    else if (/^[ \t]/.test(line) && last) last[1] = capped(`${last[1]} ${line.trim()}`)
    else if (name !== undefined) group.push([name.toLowerCase(), capped(value.trim())])
  }
  const read = groups.filter(({ length }) => length > 0)
  return read.map((group) => group.map(([name, value]) => [name, plain(value)]))
}

const FIELD = /^([!-9;-~]{1,80})[ \t]*:(.*)$/

const capped = (value: string) => value.slice(0, MOST_VALUE)

/** Encoded words are decoded; control characters become spaces, and runs of them one space. */
const plain = (value: string) => onOneLine(decodeWords(value))

/** Fit for a database and one line. */
export const onOneLine = (text: string): string =>
  text
    .replace(/[\s\p{Cc}]+/gu, " ")
    .trim()
    .toWellFormed()

/** All values of that name in the group. */
export const fieldsOf = (group: ReportGroup, name: string): string[] =>
  group.filter(([key]) => key === name).map(([, value]) => value)

const ADDRESS = /[^\s<>()[\]:;,"：（）。，；、]{1,64}@[^\s<>()[\]:;,"@：（）。，；、]{1,253}/u

/** The first thing in the text that looks like an address. Of long text only the beginning is read. */
export function addressIn(text: string): string | undefined {
  const start = onOneLine(text.slice(0, MOST_VALUE))
  return ADDRESS.exec(start)?.[0].replace(/[.'>]+$/, "")
}
