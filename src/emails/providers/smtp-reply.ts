/** A reply is a few lines; a server that sends more than this is not speaking SMTP. */
const MAX_LINES = 100
const MAX_UNREAD = 64 * 1024

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

/** Cuts the bytes of a server into replies (RFC 5321, 4.2). */
export class ReplyReader {
  #unread = ""
  #lines: string[] = []

  /** Whether bytes came that are not part of a whole reply yet. */
  get halfway(): boolean {
    return this.#unread !== "" || this.#lines.length > 0
  }

  /** The replies that these bytes complete. Throws where they are not SMTP. */
  push(bytes: Buffer): SmtpReply[] {
    const lines = (this.#unread + bytes.toString("latin1")).split("\n")
    this.#unread = lines.pop() ?? ""
    if (this.#unread.length > MAX_UNREAD) throw new Error("a reply without end")

    const replies: SmtpReply[] = []
    for (const line of lines) {
      const reply = this.#line(Buffer.from(line.replace(/\r$/, ""), "latin1").toString())
      if (reply) replies.push(reply)
    }
    return replies
  }

  #line(line: string): SmtpReply | undefined {
    const [, code, mark, words] = /^([2-5]\d\d)(?:([ -])(.*))?$/s.exec(line) ?? []
    if (code === undefined) throw new Error(`not an SMTP reply: ${clean(line).slice(0, 80)}`)
    this.#lines.push(words ?? "")
    if (this.#lines.length > MAX_LINES) throw new Error("a reply without end")
    if (mark === "-") return undefined

    const lines = this.#lines
    this.#lines = []
    const enhanced = /^[245]\.\d{1,3}\.\d{1,3}(?= |$)/.exec(lines[0] ?? "")?.[0] ?? null
    const text = clean(`${code} ${lines.join(" ")}`)
      .trim()
      .slice(0, MAX_TEXT)
    return { code: Number(code), enhanced, text, lines }
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
