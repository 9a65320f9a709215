import type { Socket } from "bun"
import type { Step } from "./smtp-sink"

/** One message that the relay took, or had in full when it was told to misbehave. */
export interface Receipt {
  message_id: string
  recipients: string[]
  raw: string
  /** The value of `round` at that moment. */
  round: number
}

export interface RelayOptions {
  port?: number
  /** How long the answer to a whole message takes: the time in which a client may die. */
  delay_ms?: number
  /** What it does instead of greeting. */
  atConnect?: () => Step | undefined
  /** What it does instead of taking this recipient. */
  atRecipient?: (recipient: string) => Step | undefined
  /** What it does instead of taking a whole message to this first recipient. */
  atEnd?: (recipient: string) => Step | undefined
}

interface Session {
  unread: string
  message: string[] | undefined // the lines so far, while DATA lasts
  recipients: string[]
  silent: boolean
}

/**
 * A mail relay that keeps and counts what it takes. A message counts as soon as all of it is
 * there, as at a relay that syncs first and answers then.
 */
export function countingRelay(options: RelayOptions = {}) {
  const receipts: Receipt[] = []
  let connections = 0
  const relay = { round: 0 }

  const act = (socket: Socket<Session>, step: Step) => {
    const { data } = socket
    if (data.silent) return
    if (step === "drop") return void socket.terminate()
    if (step === "stall" || step === "half-close") data.silent = true
    if (step === "half-close") socket.shutdown(true)
    if (data.silent) return
    socket.write(`${step}\r\n`)
    if (step.startsWith("421")) socket.end()
  }

  const finish = (socket: Socket<Session>, lines: string[]) => {
    const { recipients } = socket.data
    socket.data = { ...socket.data, message: undefined, recipients: [] }
    const unusual = options.atEnd?.(recipients[0] ?? "")
    if (unusual) return act(socket, unusual)
    const raw = `${lines.join("\r\n")}\r\n`
    const message_id = /^message-id:\s*(\S+)/im.exec(raw)?.[1] ?? ""
    receipts.push({ message_id, recipients, raw, round: relay.round })
    setTimeout(() => act(socket, "250 2.0.0 kept"), options.delay_ms ?? 0)
  }

  const obey = (socket: Socket<Session>, line: string) => {
    const verb = line.split(/[ :]/)[0]?.toUpperCase() ?? ""
    const { data } = socket
    if (verb === "EHLO") return act(socket, "250-relay.test\r\n250-PIPELINING\r\n250 8BITMIME")
    if (verb === "MAIL" || verb === "RSET") data.recipients = []
    if (verb === "QUIT") {
      act(socket, "221 2.0.0 bye")
      return void socket.end()
    }
    if (verb === "RCPT") {
      const recipient = /<([^>]*)>/.exec(line)?.[1] ?? ""
      const unusual = options.atRecipient?.(recipient)
      if (unusual) return act(socket, unusual)
      data.recipients.push(recipient)
    }
    if (verb !== "DATA") return act(socket, "250 2.0.0 ok")
    if (data.recipients.length === 0) return act(socket, "554 5.5.1 no recipient")
    data.message = []
    act(socket, "354 go on")
  }

  const hear = (socket: Socket<Session>, line: string) => {
    const { message } = socket.data
    if (!message) return obey(socket, line)
    if (line === ".") return finish(socket, message)
    message.push(line.replace(/^\.\./, "."))
  }

  const server = Bun.listen<Session>({
    hostname: "127.0.0.1",
    port: options.port ?? 0,
    socket: {
      open(socket) {
        connections++
        socket.data = { unread: "", message: undefined, recipients: [], silent: false }
        act(socket, options.atConnect?.() ?? "220 relay.test ESMTP")
      },
      data(socket, chunk) {
        const parts = (socket.data.unread + chunk.toString("latin1")).split("\r\n")
        socket.data.unread = parts.pop() ?? ""
        for (const line of parts) hear(socket, line)
      },
    },
  })

  return Object.assign(relay, {
    port: server.port,
    receipts,
    connections: () => connections,
    /** How often each message came, by its Message-ID. */
    counts() {
      const counts = new Map<string, number>()
      for (const { message_id } of receipts)
        counts.set(message_id, (counts.get(message_id) ?? 0) + 1)
      return counts
    },
    [Symbol.dispose]: () => server.stop(true),
  })
}

export type CountingRelay = ReturnType<typeof countingRelay>
