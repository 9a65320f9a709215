import { connect, type Socket } from "node:net"

const HEADERS = "POST /v1/emails HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"

/** Requests that begin and never end: one byte, half a header, half a body. */
const HALVES = ["P", HEADERS, `${HEADERS}Content-Length: 1000\r\n\r\n{"to":`]

/** A whole request, whose answer leaves the connection open. */
export const WHOLE = ["GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"]

/** Connections that wait for ever. Leaving the scope closes them. */
export interface IdleConnections extends Disposable {
  /** How many of them the server has not closed. */
  open(): number
}

interface Wanted {
  count: number
  /** The address of each, on the loopback. */
  from?: (number: number) => string
  /** What they say, in turn, before they are silent. */
  words?: string[]
  /** How many begin at the same time. */
  at_once?: number
}

/** Opens connections to a server. Resolves when each was open, if only for a moment. */
export async function idleConnections(url: string, wanted: Wanted): Promise<IdleConnections> {
  const { count, from = () => "127.0.0.1", words = HALVES, at_once = 10 } = wanted
  const { hostname: host, port } = new URL(url)
  const sockets = new Set<Socket>()
  const open = (number: number) => {
    const { promise, resolve } = Promise.withResolvers<void>()
    const socket = connect({ host, port: Number(port), localAddress: from(number) })
    sockets.add(socket)
    socket.on("connect", () => {
      socket.write(words[number % words.length] ?? "")
      resolve()
    })
    socket.on("error", () => {})
    socket.on("close", () => {
      sockets.delete(socket)
      resolve()
    })
    socket.resume()
    return promise
  }
  for (let first = 0; first < count; first += at_once) {
    const size = Math.min(at_once, count - first)
    await Promise.all(Array.from({ length: size }, (_, index) => open(first + index)))
  }
  return {
    open: () => sockets.size,
    [Symbol.dispose]: () => {
      for (const socket of [...sockets]) socket.destroy()
    },
  }
}
