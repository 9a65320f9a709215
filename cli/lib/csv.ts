import { exits, Failure } from "./errors"

/**
 * The most characters of one record. A subscriber with all fields and 16 KiB of metadata has fewer. A
 * longer record has a quote or a line that does not end.
 */
export const LONGEST_RECORD = 65_536

/** One line of a text. */
export interface TextLine {
  /** From 1. */
  line: number
  /** A line that is too long is cut one character behind `LONGEST_RECORD`. */
  text: string
  /** LF, CRLF, or CR alone; empty where the text ends without one. */
  end: string
}

/** The lines of a text that comes in pieces. */
export async function* linesIn(pieces: AsyncIterable<string>): AsyncGenerator<TextLine> {
  let [line, text, cr] = [1, "", ""]
  for await (const piece of pieces) {
    const whole = cr + piece
    cr = whole.endsWith("\r") ? "\r" : "" // the next piece may begin with its LF
    const parts = whole.slice(0, whole.length - cr.length).split(/(\r\n|[\r\n])/)
    for (let at = 0; at < parts.length; at += 2) {
      text += parts[at]?.slice(0, LONGEST_RECORD + 1 - text.length) ?? ""
      const end = parts[at + 1]
      if (end === undefined) break
      yield { line, text, end }
      line += 1
      text = ""
    }
  }
  if (text !== "" || cr !== "") yield { line, text, end: cr }
}

/** One record of a CSV text. */
export interface CsvRecord {
  /** Of the text where it begins, from 1. */
  line: number
  cells: string[]
  /** Characters, with quotes and separators. */
  length: number
}

interface OpenRecord extends CsvRecord {
  /** The line of the quote that is not closed yet; 0 for none. */
  quote: number
}

/**
 * The records of a CSV text (RFC 4180) that comes in pieces. Quoted cells may hold line breaks, and lines may end in
 * CR alone. The separator is the one that the first line has most of: comma, semicolon, tabulator or `|`. Excel may name
 * it before, in a line `sep=;`. Empty lines are left out. Throws exit 7 for a quote that is not closed, and for a record of more than `LONGEST_RECORD` characters.
 */
export async function* recordsIn(pieces: AsyncIterable<string>): AsyncGenerator<CsvRecord> {
  let separator: string | undefined
  let record: OpenRecord | undefined
  for await (const line of linesIn(pieces)) {
    if (record === undefined && line.text === "") continue
    if (separator === undefined) {
      const named = NAMED_SEPARATOR.exec(line.text)?.[1]
      separator = named === "\\t" ? "\t" : (named ?? separatorOf(line.text))
      if (named !== undefined) continue
    }
    record ??= { line: line.line, cells: [], length: 0, quote: 0 }
    addLine(record, line, separator)
    if (record.length > LONGEST_RECORD) throw endless(record)
    if (record.quote > 0) continue
    yield record
    record = undefined
  }
  if (record) throw endless(record)
}

/** A spreadsheet takes any sign. Some programs write the tabulator as `\t`. */
const NAMED_SEPARATOR = /^"?sep=(\\t|[^"])"?$/i

const SEPARATORS = [",", ";", "\t", "|"]

function separatorOf(line: string): string {
  const unquoted = line.replaceAll(/"[^"]*"/g, "")
  const count = (separator: string) => unquoted.split(separator).length
  return SEPARATORS.toSorted((one, other) => count(other) - count(one))[0] ?? ","
}

/** Adds the cells of a line. The last one stays open where its quote is not closed. */
function addLine(record: OpenRecord, { line, text, end }: TextLine, separator: string): void {
  let cell = record.quote > 0 ? (record.cells.pop() ?? "") : ""
  for (let at = 0; at < text.length; at++) {
    const char = text[at] ?? ""
    if (record.quote > 0) {
      if (char !== '"') cell += char
      else if (text[at + 1] === '"') cell += text[at++]
      else {
        record.quote = 0
        let next = at + 1
        while (text[next] === " ") next += 1
        // `"Ann" Example`: the quotes belong to the text
        if (next < text.length && text[next] !== separator) cell = `"${cell}"`
      }
    } else if (char === '"' && cell.trim() === "") {
      record.quote = line
      cell = ""
    } else if (char === separator) {
      record.cells.push(cell)
      cell = ""
    } else cell += char
  }
  record.cells.push(record.quote > 0 ? cell + end : cell)
  record.length += text.length + end.length
}

function endless({ line, quote }: OpenRecord): Failure {
  const text =
    quote > 0
      ? `FILE: the quote that opens in line ${quote} is not closed.`
      : `FILE: the record in line ${line} has more than ${LONGEST_RECORD} characters.`
  const hint =
    quote > 0
      ? `close it, or write two quotes for one inside a cell; a record has at most ${LONGEST_RECORD} characters`
      : "each record ends with its line; only a quoted cell may hold line breaks"
  const code = quote > 0 ? "open_quote" : "record_too_long"
  return new Failure(exits.invalid, code, text, { hint })
}

/** One line of CSV, without a cell that a spreadsheet would run as a formula. */
export const csvLine = (cells: readonly string[]): string =>
  `${cells.map((cell) => quoted(inert(cell))).join(",")}\r\n`

const FORMULA = /^[=+\-@\t\r']/

const inert = (text: string) => (FORMULA.test(text) ? `'${text}` : text)

const quoted = (text: string) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text)

/** What a cell stood for, before an apostrophe kept a spreadsheet from running it. */
export const plainCell = (cell: string): string =>
  cell.startsWith("'") && FORMULA.test(cell.slice(1)) ? cell.slice(1) : cell
