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
