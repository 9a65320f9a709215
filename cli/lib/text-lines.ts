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
