/** A reply is a few lines; a server that sends more than this is not speaking SMTP. */
const MAX_LINES = 100
const MAX_BYTES = 64 * 1024

const ENDLESS = "a reply without end"
const OUT_OF_TURN = "the server spoke out of turn"

const MAX_TEXT = 1_000

export interface SmtpReply {
  code: number
  /** RFC 3463, `5.1.1`. */
  enhanced: string | null
  /** The server's words, code included, on one line and without control characters. */
  text: string
  /** The words of each line, without the code. */
  lines: string[]
}

export const isGood = (reply: SmtpReply): boolean => reply.code >= 200 && reply.code < 300

/** Cuts the bytes of a server into replies (RFC 5321, 4.2). */
export class ReplyReader {
  /** Why nothing is read any more. What came whole before it was given out. */
  fault: string | undefined
  #unread = ""
  #lines: string[] = []
  /** Of the lines so far, in bytes. */
  #size = 0

  /** Whether bytes came that are not part of a whole reply yet. */
  get halfway(): boolean {
    return this.#unread !== "" || this.#lines.length > 0
  }

  /**
   * The replies that these bytes complete. What cannot be one is the `fault` from then on, and so is
   * what follows the `most` that were asked for: else a flood of them would fill the memory.
   */
  push(bytes: Buffer, most = Number.POSITIVE_INFINITY): SmtpReply[] {
    const replies: SmtpReply[] = []
    if (this.fault !== undefined) return replies
    const lines = (this.#unread + bytes.toString("latin1")).split("\n")
    this.#unread = lines.pop() ?? ""
    for (const line of lines) {
      const reply = replies.length < most ? this.#line(line) : this.#fail(OUT_OF_TURN)
      if (reply) replies.push(reply)
      if (this.fault !== undefined) return replies
    }
    if (this.#unread.length > MAX_BYTES) this.fault = ENDLESS
    else if (this.#unread !== "" && replies.length >= most) this.fault = OUT_OF_TURN
    return replies
  }

  #line(bytes: string): SmtpReply | undefined {
    this.#size += bytes.length
    if (this.#size > MAX_BYTES || this.#lines.length === MAX_LINES) return this.#fail(ENDLESS)
    const line = Buffer.from(bytes.replace(/\r$/, ""), "latin1").toString()
    const [, code, mark, words] = /^([2-5]\d\d)(?:([ -])(.*))?$/s.exec(line) ?? []
    if (code === undefined) return this.#fail(`not an SMTP reply: ${clean(line).slice(0, 80)}`)
    this.#lines.push(words ?? "")
    if (mark === "-") return undefined

    const lines = this.#lines
    this.#lines = []
    this.#size = 0
    const enhanced = /^[245]\.\d{1,3}\.\d{1,3}(?= |$)/.exec(lines[0] ?? "")?.[0] ?? null
    const text = clean(`${code} ${lines.join(" ")}`)
      .trim()
      .slice(0, MAX_TEXT)
    return { code: Number(code), enhanced, text, lines }
  }

  #fail(fault: string): undefined {
    this.fault = fault
  }
}

/** As long as this, a part of a secret is taken for it; a shorter one may be any word. */
const TELLING = 12
const SHORTEST = 8

/** Some servers repeat the command that they dislike: what comes from a secret on is left out. */
export function veiled(reply: SmtpReply, secrets: string[]): SmtpReply {
  if (secrets.length === 0) return reply
  const starts = secrets
    .filter((secret) => secret.length >= SHORTEST)
    .map((one) => one.slice(0, TELLING))
  const hide = (text: string) =>
    starts.reduce((rest, start) => {
      const at = rest.indexOf(start)
      return at < 0 ? rest : `${rest.slice(0, at)}***`
    }, text)
  return { ...reply, text: hide(reply.text), lines: reply.lines.map(hide) }
}

const clean = (text: string) => text.replace(/[\p{Cc}\u2028\u2029]/gu, "?")
