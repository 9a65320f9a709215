import { createServer } from "node:net"

/**
 * A port of the loopback that was free a moment ago, for programs that cannot be told to take any.
 * Servers of our own listen on port 0 instead, where nobody can come in between.
 */
export async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((listening, failed) => {
    server.once("error", failed)
    server.listen(0, "127.0.0.1", listening)
  })
  const address = server.address()
  await new Promise((closed) => server.close(closed))
  if (address === null || typeof address === "string") throw new Error("no port was free")
  return address.port
}
