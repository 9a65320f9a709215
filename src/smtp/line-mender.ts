const LF = 10
const CR = 13
const SPACE = 32
const DOT = 46

/** As much as common servers take. RFC 5321 4.5.3.1.6 asks for 1,000. */
const MOST_LINE_BYTES = 10_000

type Fault = "a NUL" | "a line over 10,000 bytes"

const TOO_LONG = "a line over 10,000 bytes"

/**
 * Makes of what other servers send, chunk by chunk, lines that end in CRLF: a bare LF, or one behind
 * several CR, becomes CRLF, and every other CR becomes a space. A line that is a single dot
 * gets a second one, unless exactly CRLF stands before and behind it. So only CRLF dot CRLF ends a message, and
 * each other dot is a part of its text.
 */
export class LineMender {
  #line_bytes = 0
  /** CRs whose meaning shows with the next byte. They are not passed on yet. */
  #crs = 0
  /** The line is a dot so far. */
  #is_dot = false
  /** The line before did not end in exactly CRLF. */
  #is_after_bare = false

  /** The mended chunk, which is the given one where nothing is to mend; or what is wrong with it. */
  feed(chunk: Buffer): Buffer | Fault {
    if (chunk.includes(0)) return "a NUL"
    let mended: Buffer | undefined
    let size = 0
    const begin = (at: number) => {
      mended = Buffer.allocUnsafe(2 * chunk.length + this.#crs + 4)
      size = at - Math.min(this.#crs, at)
      chunk.copy(mended, 0, 0, size)
    }
    for (let at = 0; at < chunk.length; at++) {
      const byte = chunk[at] ?? 0
      if (byte === CR) {
        if (++this.#crs > MOST_LINE_BYTES) return TOO_LONG
      } else if (byte === LF) {
        const is_proper = this.#crs === 1
        const is_odd_dot = this.#is_dot && (this.#is_after_bare || !is_proper)
        if (!mended && (!is_proper || is_odd_dot || at === 0)) begin(at)
        if (mended && is_odd_dot) mended[size++] = DOT
        if (mended) {
          mended[size++] = CR
          mended[size++] = LF
        }
        this.#endLine(!is_proper)
      } else {
        if (!mended && this.#crs > 0) begin(at)
        this.#line_bytes += this.#crs
        for (; this.#crs > 0; this.#crs--) if (mended) mended[size++] = SPACE
        if (mended) mended[size++] = byte
        this.#is_dot = this.#line_bytes === 0 && byte === DOT
        if (++this.#line_bytes > MOST_LINE_BYTES) return TOO_LONG
      }
    }
    if (!mended && this.#crs > 0) begin(chunk.length)
    return mended?.subarray(0, size) ?? chunk
  }

  #endLine(is_after_bare: boolean) {
    this.#is_after_bare = is_after_bare
    this.#is_dot = false
    this.#line_bytes = 0
    this.#crs = 0
  }
}
