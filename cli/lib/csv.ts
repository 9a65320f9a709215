import { exits, Failure } from "./errors"

/** One record of a CSV text. */
export interface CsvRecord {
  /** Of the text where it begins, from 1. */
  line: number
  cells: string[]
  /** Characters, with quotes and separators. */
  length: number
}

const SEPARATORS = [",", ";", "\t"]

/**
 * Reads CSV (RFC 4180) piece by piece: quoted cells may hold line breaks, and lines may end in LF, or in CR
 * alone. The separator is the one that the first line has most of: comma, semicolon or tabulator. Empty lines are
 * left out. Throws exit 7 for a quote that is not closed, and for a record of more than `LONGEST_RECORD`
 * characters.
 */
export class CsvReader {
  #rest = ""
  #line = 1
  #begun = 1
  #cells: string[] = []
  #cell = ""
  #is_quoted = false
  /** Where the last quote was opened. */
  #opened = 1
  #length = 0
  /** The cell had quotes, so it is no empty line. */
  #was_quoted = false
  #separator: string | undefined

  /** Takes a piece of the text, and returns the records that are complete. */
  push(piece: string): CsvRecord[] {
    return this.#read(piece, false)
  }

  /** The text is over: returns what is left. */
  end(): CsvRecord[] {
    const last = this.#read("", true)
    if (this.#is_quoted) throw this.#endless()
    return [...last, ...this.#record()]
  }

  #read(piece: string, is_over: boolean): CsvRecord[] {
    let text = this.#rest + piece
    this.#rest = ""
    if (this.#separator === undefined) {
      if (!is_over && !/[\r\n]/.test(text)) {
        if (text.length > LONGEST_RECORD) throw this.#endless()
        this.#rest = text
        return []
      }
      if (text.startsWith("\ufeff")) text = text.slice(1)
      this.#separator = separatorOf(text)
    }
    const found: CsvRecord[] = []
    for (let at = 0; at < text.length; at++) {
      const char = text[at] ?? ""
      // A quote, or a CR, says what it is only with the character behind it.
      if (!is_over && at === text.length - 1 && (char === '"' || char === "\r")) {
        this.#rest = char
        break
      }
      at += this.#take(char, text[at + 1], found)
    }
    return found
  }

  /** Takes one character; returns how many more it took. */
  #take(char: string, next: string | undefined, found: CsvRecord[]): number {
    if (++this.#length > LONGEST_RECORD) throw this.#endless()
    if (char === "\n") this.#line += 1
    if (this.#is_quoted) {
      if (char !== '"') this.#cell += char
      else if (next !== '"') this.#is_quoted = false
      else {
        this.#cell += '"'
        return 1
      }
      return 0
    }
    if (char === '"' && this.#cell === "") {
      this.#is_quoted = true
      this.#was_quoted = true
      this.#opened = this.#line
    } else if (char === this.#separator) {
      this.#cells.push(this.#cell)
      this.#cell = ""
    } else if (char === "\n") found.push(...this.#record())
    else if (char !== "\r") this.#cell += char
    else if (next !== "\n") {
      this.#line += 1
      found.push(...this.#record())
    }
    return 0
  }

  #record(): CsvRecord[] {
    const cells = [...this.#cells, this.#cell]
    const is_empty = cells.length === 1 && this.#cell === "" && !this.#was_quoted
    const record = { line: this.#begun, cells, length: this.#length }
    this.#begun = this.#line
    this.#cells = []
    this.#cell = ""
    this.#length = 0
    this.#was_quoted = false
    return is_empty ? [] : [record]
  }

  #endless(): Failure {
    const text = this.#is_quoted
      ? `FILE: the quote that opens in line ${this.#opened} is not closed.`
      : `FILE: the record in line ${this.#begun} has more than ${LONGEST_RECORD} characters.`
    const hint = this.#is_quoted
      ? `close it, or write two quotes for one inside a cell; a record has at most ${LONGEST_RECORD} characters`
      : "each record ends with its line; only a quoted cell may hold line breaks"
    const code = this.#is_quoted ? "open_quote" : "record_too_long"
    return new Failure(exits.invalid, code, text, { hint })
  }
}

function separatorOf(text: string): string {
  const [first = ""] = text.split(/[\r\n]/, 1)
  const count = (separator: string) => first.split(separator).length
  return SEPARATORS.toSorted((one, other) => count(other) - count(one))[0] ?? ","
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

/**
 * The most characters of one record. A subscriber with all fields and 16 KiB of metadata has fewer. A
 * longer record has a quote or a line that does not end.
 */
export const LONGEST_RECORD = 65_536

/** One line of a text. */
export interface TextLine {
  /** From 1. */
  line: number
  /** Without its line end. A longer line is cut after `LONGEST_RECORD` characters. */
  text: string
  is_too_long: boolean
}

/** Reads lines piece by piece, and keeps no more of a line than the longest record. */
export class LineReader {
  #line = 1
  #text = ""
  #is_too_long = false

  /** Takes a piece of the text, and returns the lines that are complete. */
  push(piece: string): TextLine[] {
    const found: TextLine[] = []
    let from = 0
    for (let to = piece.indexOf("\n"); to !== -1; to = piece.indexOf("\n", from)) {
      this.#add(piece, from, to)
      found.push(this.#take())
      from = to + 1
    }
    this.#add(piece, from, piece.length)
    return found
  }

  /** Ends the text, and returns the part behind the last line end. */
  end(): TextLine[] {
    return this.#text === "" ? [] : [this.#take()]
  }

  #add(piece: string, from: number, to: number): void {
    const room = LONGEST_RECORD - this.#text.length
    if (to - from > room) this.#is_too_long = true
    this.#text += piece.slice(from, Math.min(to, from + room))
  }

  #take(): TextLine {
    const taken = { line: this.#line, text: this.#text, is_too_long: this.#is_too_long }
    this.#line += 1
    this.#text = ""
    this.#is_too_long = false
    return taken
  }
}
