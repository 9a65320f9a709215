/**
 * An SMTP server, as a process of its own, that takes every message and remembers its Message-ID:
 * what was lost or came twice shows. Prints its port, then `messages different` four times a second.
 */
export {} // a module: its names are its own

const ids = new Set<string>()
let messages = 0

interface Conversation {
  unread: string
  inData: boolean
}

const listener = Bun.listen<Conversation>({
  hostname: "127.0.0.1",
  port: 0,
  socket: {
    open(socket) {
      socket.data = { unread: "", inData: false }
      socket.write("220 sink\r\n")
    },
    data(socket, bytes) {
      socket.data.unread += bytes.toString("latin1")
      const answers = read(socket.data)
      if (answers !== "") socket.write(answers)
    },
  },
})

function read(talk: Conversation): string {
  let answers = ""
  for (;;) {
    const mark = talk.inData ? "\r\n.\r\n" : "\r\n"
    const end = talk.unread.indexOf(mark)
    if (end === -1) return answers
    const text = talk.unread.slice(0, end)
    talk.unread = talk.unread.slice(end + mark.length)
    answers += talk.inData ? taken(text) : answer(text)
    talk.inData = !talk.inData && /^DATA/i.test(text)
  }
}

function answer(line: string): string {
  if (/^EHLO/i.test(line)) return "250-sink\r\n250 PIPELINING\r\n"
  if (/^DATA/i.test(line)) return "354 go on\r\n"
  return /^QUIT/i.test(line) ? "221 bye\r\n" : "250 ok\r\n"
}

function taken(message: string): string {
  const id = /^Message-ID: (\S+)/im.exec(message)?.[1]
  if (id === undefined) return "554 no Message-ID\r\n"
  ids.add(id)
  messages += 1
  return "250 taken\r\n"
}

console.log(String(listener.port))
setInterval(() => console.log(`${messages} ${ids.size}`), 250)
