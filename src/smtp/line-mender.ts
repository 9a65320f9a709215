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
   * of no more use. Looking at each byte costs the same for every mail; searching line by line costs most where
   * lines are short.
   */
  feed(chunk: Buffer): Buffer | ByteFault {
    if (chunk.includes(0)) return "a NUL"
    const { most, fault } = this.#line
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
        if (++this.#crs > most) return fault
      } else if (byte === LF) {
        const is_odd = this.#crs !== 1
        const is_odd_dot = this.#is_dot && (this.#is_after_odd || is_odd)
        if (this.#is_strict && (this.#crs === 0 || is_odd_dot)) return BARE
        if (!mended && (is_odd || is_odd_dot || at === 0)) begin(at)
        if (mended && is_odd_dot) mended[size++] = DOT
        if (mended) {
          mended[size++] = CR
          mended[size++] = LF
        }
        this.#endLine(is_odd)
      } else {
        if (this.#is_strict && this.#crs > 0) return BARE
        if (!mended && this.#crs > 0) begin(at)
        this.#line_bytes += this.#crs
        for (; this.#crs > 0; this.#crs--) if (mended) mended[size++] = SPACE
        if (mended) mended[size++] = byte
        this.#is_dot = this.#line_bytes === 0 && byte === DOT
        if (++this.#line_bytes > most) return fault
      }
    }
    if (!mended && this.#crs > 0) begin(chunk.length)
    return mended?.subarray(0, size) ?? chunk
  }

  #endLine(is_odd: boolean) {
    this.#is_after_odd = is_odd
    this.#is_dot = false
    this.#line_bytes = 0
    this.#crs = 0
  }
}
