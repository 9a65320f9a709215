import { createServer } from "node:net"

/** Below those that Linux gives to connections and to servers on port 0: none of them can take it meanwhile. */
const [FIRST, LAST] = [10_000, 32_000]
const TRIES = 100

/**
 * A port of the loopback that was free a moment ago, for programs that cannot be told to take any.
 * Servers of our own listen on port 0 instead, where nobody can come in between.
 */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < TRIES; tries++) {
    const port = FIRST + Math.floor(Math.random() * (LAST - FIRST))
    if (await isFree(port)) return port
  }
  throw new Error("no port was free")
}

function isFree(port: number): Promise<boolean> {
  const server = createServer()
  return new Promise((answer) => {
    server.once("error", () => answer(false))
    server.listen(port, "127.0.0.1", () => server.close(() => answer(true)))
  })
}
