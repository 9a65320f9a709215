const LF = 10
const CR = 13
const SPACE = 32
const DOT = 46

const BARE = "a bare CR or LF"

/** What no SMTP stream may hold. */
export type ByteFault = typeof BARE | "a NUL" | `a line over ${"2,048" | "10,000"} bytes`

/** The longest line in bytes; RFC 5321 4.5.3.1.6 asks for 1,000. */
const OF_PROGRAMS = { most: 2048, fault: "a line over 2,048 bytes" } as const
const OF_SERVERS = { most: 10_000, fault: "a line over 10,000 bytes" } as const

/**
 * Reads what a client sends, chunk by chunk, so that only CRLF dot CRLF ends a message, and every line ends in
 * CRLF. Nobody else can see the end of a mail where this server sees none.
 *
 * Of a program that submits, a bare CR or LF is a fault. But CR CR LF becomes CRLF: some mail programs write so in
 * text files with CRLF that they attach. Other servers cannot be told to change what they send. Of them a bare LF
 * becomes CRLF as well, and a bare CR becomes a space. A line that is a single dot gets a second one, unless exactly CRLF
 * stands before and behind it: so it is a part of the text.
 */
export class LineMender {
  readonly #is_strict: boolean
  readonly #line: typeof OF_PROGRAMS | typeof OF_SERVERS
  #line_bytes = 0
  /** CRs whose meaning shows with the next byte. They are not passed on yet. */
  #crs = 0
  /** The line is a dot so far. */
  #is_dot = false
  /** The line before did not end in exactly CRLF. */
  #is_after_odd = false

  constructor(of: "programs" | "servers") {
    this.#is_strict = of === "programs"
    this.#line = this.#is_strict ? OF_PROGRAMS : OF_SERVERS
  }

  /**
   * The mended chunk, which is the given one where nothing is to mend; or the first fault. After a fault the mender is
   * of no more use.
   */
  feed(chunk: Buffer): Buffer | ByteFault {
    if (chunk.includes(0)) return "a NUL"
    return this.#isRegular(chunk) ? chunk : this.#mend(chunk)
  }

  /**
   * Whether nothing is to mend; then the chunk is read. Looking at each byte costs the same for every mail; searching line
   * by line costs most where lines are short.
   */
  #isRegular(chunk: Buffer): boolean {
    if (this.#crs > 0 || this.#is_after_odd) return false
    const { most } = this.#line
    let line_bytes = this.#line_bytes
    for (let at = 0; at < chunk.length; at++) {
      const byte = chunk[at]
      if (byte === CR) {
        if (chunk[++at] !== LF) return false
        line_bytes = 0
      } else if (byte === LF || ++line_bytes > most) return false
    }
    this.#line_bytes = line_bytes
    this.#is_dot = line_bytes === 1 && chunk.at(-1) === DOT
    return true
  }

  /** In the loop a field would cost ten times as much. */
  #mend(chunk: Buffer): Buffer | ByteFault {
    const { most, fault } = this.#line
    const is_strict = this.#is_strict
    let crs = this.#crs
    let line_bytes = this.#line_bytes
    let is_dot = this.#is_dot
    let is_after_odd = this.#is_after_odd
    // Each byte becomes at most two, and a dot that was passed on may get its second one.
    const mended = Buffer.allocUnsafe(2 * chunk.length + crs + 2)
    let size = 0
    for (let at = 0; at < chunk.length; at++) {
      const byte = chunk[at] as number
      if (byte === CR) {
        if (++crs > most) return fault
      } else if (byte === LF) {
        const is_odd = crs !== 1
        const is_odd_dot = is_dot && (is_after_odd || is_odd)
        if (is_strict && (crs === 0 || is_odd_dot)) return BARE
        if (is_odd_dot) mended[size++] = DOT
        mended[size++] = CR
        mended[size++] = LF
        is_after_odd = is_odd
        is_dot = false
        line_bytes = 0
        crs = 0
      } else {
        if (is_strict && crs > 0) return BARE
        line_bytes += crs
        for (; crs > 0; crs--) mended[size++] = SPACE
        mended[size++] = byte
        is_dot = line_bytes === 0 && byte === DOT
        if (++line_bytes > most) return fault
      }
    }
    this.#crs = crs
    this.#line_bytes = line_bytes
    this.#is_dot = is_dot
    this.#is_after_odd = is_after_odd
    return mended.subarray(0, size)
  }
}
