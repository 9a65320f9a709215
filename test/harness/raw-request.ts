/** The whole answer to these lines, sent as they are: no client mends or refuses them before. */
export async function say(port: number, ...lines: string[]): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  let heard = ""
  const socket = await Bun.connect({
    hostname: "127.0.0.1",
    port,
    socket: {
      data(_, chunk) {
        heard += chunk.toString()
      },
      close: () => resolve(heard),
      error: (_, error) => reject(error),
    },
  })
  const body = lines.at(-1)?.startsWith("{") ? lines.pop() : ""
  socket.write([...lines, "Connection: close", "", body].join("\r\n"))
  return promise
}

/** A request whose body is sent by hand, as much as there is room for. */
export interface OpenRequest extends Disposable {
  /** Resolves when the other side, or the system, has taken it all; or when there is an answer. */
  send(bytes: Uint8Array | string): Promise<void>
  /** Bytes that were taken so far, the head among them. */
  sent(): number
  /** Breaks the connection off. */
  cut(): void
  answer: Promise<{ status: number; headers: string; body: ReturnType<typeof JSON.parse> }>
}

/** Sends the head and leaves the rest to the caller. */
export async function openRequest(port: number, head: string[]): Promise<OpenRequest> {
  const { promise: answer, resolve } = Promise.withResolvers<Awaited<OpenRequest["answer"]>>()
  let answered = false
  let room = Promise.withResolvers<void>()
  let sent = 0
  let heard = ""
  const settle = () => {
    if (answered) return
    answered = true
    room.resolve()
    const [headers = "", body = ""] = heard.split("\r\n\r\n")
    const status = Number(headers.split(" ")[1])
    resolve({ status, headers, body: body ? JSON.parse(body) : undefined })
  }
  const socket = await Bun.connect({
    hostname: "127.0.0.1",
    port,
    socket: {
      data(_, chunk) {
        heard += chunk.toString()
        const [headers = "", body = ""] = heard.split("\r\n\r\n")
        const length = Number(/content-length: (\d+)/i.exec(headers)?.[1] ?? Number.NaN)
        if (Buffer.byteLength(body) >= length) settle()
      },
      drain: () => room.resolve(),
      close: () => settle(),
      error: () => settle(),
    },
  })
  const send = async (bytes: Uint8Array | string) => {
    let rest = typeof bytes === "string" ? Buffer.from(bytes) : bytes
    while (rest.length > 0 && !answered) {
      room = Promise.withResolvers()
      const written = socket.write(rest)
      sent += Math.max(0, written)
      rest = rest.subarray(Math.max(0, written))
      if (rest.length > 0) await room.promise
    }
  }
  const cut = () => socket.terminate()
  await send(`${head.join("\r\n")}\r\n\r\n`)
  return { send, sent: () => sent, cut, answer, [Symbol.dispose]: cut }
}
