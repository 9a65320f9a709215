import type { Socket } from "bun"

interface Conversation {
  unread: string
  in_data: boolean
}

/**
 * An SMTP server that keeps what it gets byte for byte, dots and all: the lines of commands, and what
 * stood between DATA and CRLF dot CRLF. With a certificate it begins with TLS.
 */
export function rawReceiver(tls?: { key: string; cert: string }) {
  const commands: string[] = []
  const mails: string[] = []

  const next = (talk: Conversation, mark: string) => {
    const end = talk.unread.indexOf(mark)
    if (end === -1) return undefined
    const text = talk.unread.slice(0, end)
    talk.unread = talk.unread.slice(end + mark.length)
    return text
  }

  const read = (socket: Socket<Conversation>) => {
    const { data } = socket
    for (;;) {
      const text = next(data, data.in_data ? "\r\n.\r\n" : "\r\n")
      if (text === undefined) return
      if (data.in_data) {
        mails.push(`${text}\r\n`)
        data.in_data = false
        socket.write("250 2.0.0 kept\r\n")
      } else {
        commands.push(text)
        data.in_data = text === "DATA"
        socket.write(
          data.in_data ? "354 go on\r\n" : text === "QUIT" ? "221 bye\r\n" : "250 ok\r\n",
        )
      }
    }
  }

  const server = Bun.listen<Conversation>({
    hostname: "127.0.0.1",
    port: 0,
    ...(tls && { tls }),
    socket: {
      open(socket) {
        socket.data = { unread: "", in_data: false }
        socket.write("220 raw.test ESMTP\r\n")
      },
      data(socket, chunk) {
        socket.data.unread += chunk.toString("latin1")
        read(socket)
      },
    },
  })
  return { port: server.port, commands, mails, [Symbol.dispose]: () => server.stop(true) }
}
