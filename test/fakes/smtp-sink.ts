import type { Socket } from "bun"
import { flood } from "./flood"

/** What the server does instead of its usual answer: text to say, or what happens to the line. */
export type Step = string | "stall" | "drop" | "half-close" | "flood"

/**
 * Answers by command (`greeting`, `EHLO`, `MAIL`, `RCPT`, `DATA`, `end` of the message, `AUTH` …).
 * A function sees the line and may answer differently each time; undefined means as usual.
 */
export type Script = Partial<Record<string, Step | ((line: string) => Step | undefined)>>

interface Session {
  unread: string
  message: string[] | undefined // the lines so far, while DATA lasts
  recipients: number
  stalled: boolean
}

const USUAL: Record<string, string> = {
  greeting: "220 sink.test ESMTP",
  EHLO: "250-sink.test\r\n250-PIPELINING\r\n250-8BITMIME\r\n250-AUTH PLAIN LOGIN\r\n250 SIZE 1000000",
  DATA: "354 go on",
  QUIT: "221 2.0.0 bye",
  AUTH: "235 2.7.0 welcome",
  end: "250 2.0.0 kept",
}

/** The first byte of a TLS handshake, which is no command here: a sink has no certificate. */
const HANDSHAKE = 0x16

/** An SMTP server on a real socket that keeps what it gets and follows a script. */
export function smtpSink(script: Script = {}, place: { hostname?: string; port?: number } = {}) {
  const received: string[] = []
  const lines: string[] = []
  const open = new Set<Socket<Session>>()
  const replies = flood("220 go on")
  let connections = 0

  const pour = (socket: Socket<Session>) => {
    socket.data.stalled = true // nothing is answered any more
    replies.pour(socket)
  }

  function act(socket: Socket<Session>, command: string, line = ""): void {
    const scripted = script[command]
    const chosen = typeof scripted === "function" ? scripted(line) : scripted
    const nobody = command === "DATA" && socket.data.recipients === 0
    const step = chosen ?? (nobody ? "554 5.5.1 no recipient" : USUAL[command]) ?? "250 2.0.0 ok"
    if (step === "drop") return void socket.terminate()
    if (step === "half-close") return void socket.shutdown()
    if (step === "flood") return void pour(socket)
    if (step === "stall") socket.data.stalled = true
    if (socket.data.stalled) return
    if (step.startsWith("354")) socket.data.message = []
    if (command === "RCPT" && step.startsWith("250 ")) socket.data.recipients++
    if (["MAIL", "RSET", "end"].includes(command)) socket.data.recipients = 0
    if (command === "end" && step.startsWith("250 ")) {
      received.push(socket.data.message?.join("\r\n") ?? "")
    }
    if (command === "end") socket.data.message = undefined
    socket.write(`${step}\r\n`)
    if (command === "QUIT" || step.startsWith("421")) socket.end()
  }

  function onLine(socket: Socket<Session>, line: string) {
    const { message } = socket.data
    if (message && line !== ".") return void message.push(line.replace(/^\.\./, "."))
    if (!message) lines.push(line)
    act(socket, message ? "end" : (line.split(/[ :]/)[0]?.toUpperCase() ?? ""), line)
  }

  const server = Bun.listen<Session>({
    hostname: "127.0.0.1",
    port: 0,
    allowHalfOpen: true,
    ...place,
    socket: {
      open(socket) {
        connections++
        open.add(socket)
        socket.data = { unread: "", message: undefined, recipients: 0, stalled: false }
        act(socket, "greeting")
      },
      drain: replies.drain,
      // A flood goes on where the other side only says that it will write no more.
      end: (socket) => (replies.is_into(socket) ? undefined : void socket.end()),
      close(socket) {
        open.delete(socket)
        replies.end(socket)
      },
      data(socket, chunk) {
        if (chunk[0] === HANDSHAKE) return void socket.write("500 5.5.2 what?\r\n")
        const parts = (socket.data.unread + chunk.toString()).split("\r\n")
        socket.data.unread = parts.pop() ?? ""
        for (const line of parts) onLine(socket, line)
      },
    },
  })

  return {
    port: server.port,
    /** Whole messages that were answered with 250. */
    received,
    /** Every command line of every connection. */
    lines,
    connections: () => connections,
    /** Cuts the connections that are open now, as a server does that grew tired of them. */
    hangUp: () => [...open].forEach((socket) => void socket.end()),
    /** Pours replies into the connections that are open now, though nobody asked for one. */
    pour: () => [...open].forEach(pour),
    /** Resolves to how many bytes of a flood went out, when no connection takes any more of it. */
    async poured() {
      while (!replies.is_over()) await Bun.sleep(5)
      return replies.poured()
    },
    [Symbol.dispose]: () => server.stop(true),
  }
}
