import { connect as connectPlain, type Socket } from "node:net"
import { connect as connectTls, type TLSSocket } from "node:tls"
import { NEVER_MS } from "./waits"

/** A reply of a mail server: its code, and the text of each line behind it. */
export interface SmtpReply {
  code: number
  lines: string[]
  /** `250 2.1.0 Ok`, the last line. */
  text: string
}

/** A mail client of bytes: it says exactly what a test tells it, and it knows no rule of SMTP. */
export class SmtpDialogue implements Disposable {
  /** Everything that the server said, as text. */
  said = ""
  closed = false
  socket: Socket | TLSSocket
  #unread = ""
  #wake = () => {}

  constructor(socket: Socket | TLSSocket) {
    this.socket = socket
    this.#listen()
  }

  /** Connects and reads the greeting. `local` is the client's own address. */
  static async open(port: number, options: DialogueOptions = {}): Promise<SmtpDialogue> {
    const dialogue = SmtpDialogue.connect(port, options)
    await dialogue.reply()
    return dialogue
  }

  /** Connects, and reads nothing yet. `first` goes before anything else, such as a PROXY header. */
  static connect(port: number, { implicit, local, first }: DialogueOptions = {}): SmtpDialogue {
    const to = { port, host: "127.0.0.1", ...(local && { localAddress: local }) }
    if (!implicit) {
      const socket = connectPlain(to)
      if (first) socket.write(first)
      return new SmtpDialogue(socket)
    }
    return new SmtpDialogue(connectTls({ ...to, rejectUnauthorized: false }))
  }

  #listen() {
    const { socket } = this
    socket.on("data", (chunk: Buffer) => {
      if (socket !== this.socket) return
      this.said += chunk.toString()
      this.#unread += chunk.toString()
      this.#wake()
    })
    const ended = () => {
      if (socket !== this.socket) return
      this.closed = true
      this.#wake()
    }
    socket.on("error", ended).on("close", ended).on("end", ended)
  }

  /** The next whole reply. Throws where the server ends the connection before. */
  async reply(): Promise<SmtpReply> {
    const ends_at = Date.now() + NEVER_MS
    for (;;) {
      const match = /^(?:\d{3}-.*\r\n)*(\d{3})(?: .*)?\r\n/.exec(this.#unread)
      if (match) {
        this.#unread = this.#unread.slice(match[0].length)
        const lines = match[0].trimEnd().split("\r\n")
        return {
          code: Number(match[1]),
          lines: lines.map((line) => line.slice(4)),
          text: lines.at(-1) ?? "",
        }
      }
      if (this.closed) throw new Error(`The server ended the connection; it said: ${this.said}`)
      if (Date.now() > ends_at) throw new Error(`No reply; the server said: ${this.said}`)
      await this.#more(ends_at - Date.now())
    }
  }

  #more(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms)
      this.#wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  /** Bytes as they are. */
  write(bytes: string | Uint8Array): void {
    this.socket.write(bytes)
  }

  /** One line, and its reply as text: `250 2.1.0 Ok`. */
  async say(line: string): Promise<string> {
    this.write(`${line}\r\n`)
    return (await this.reply()).text
  }

  /** Lines one after another, each after the reply to the one before; the last reply. */
  async talk(...lines: string[]): Promise<string> {
    let last = ""
    for (const line of lines) last = await this.say(line)
    return last
  }

  /** The TLS handshake behind a 220. */
  async secure(): Promise<TLSSocket> {
    const raw = this.socket as Socket
    const secure = connectTls({ socket: raw, rejectUnauthorized: false })
    this.socket = secure
    this.#listen()
    await new Promise<void>((resolve, reject) => {
      secure.once("secureConnect", resolve).once("error", reject)
      secure.once("close", () => reject(new Error("The server ended the handshake")))
    })
    return secure
  }

  async starttls(): Promise<TLSSocket> {
    const reply = await this.say("STARTTLS")
    if (!reply.startsWith("220")) throw new Error(reply)
    return this.secure()
  }

  /** Waits until the server ends the connection; then what it said. */
  async end(): Promise<string> {
    const ends_at = Date.now() + NEVER_MS
    while (!this.closed && Date.now() < ends_at) await this.#more(ends_at - Date.now())
    if (!this.closed) throw new Error(`The server did not end; it said: ${this.said}`)
    return this.said
  }

  [Symbol.dispose]() {
    this.socket.destroy()
  }
}

export interface DialogueOptions {
  implicit?: boolean
  local?: string
  first?: string | Uint8Array
}

export const plainLogin = (username: string, password: string): string =>
  `AUTH PLAIN ${Buffer.from(`\0${username}\0${password}`).toString("base64")}`
