import type { Socket } from "bun"

/** Enough to show in a process's memory, and an end for a client that swallows it all. */
export const WHOLE_FLOOD = 64_000_000

/** Pours a line into sockets, without end and as fast as they are read. */
export function flood(line: string) {
  const piece = Buffer.from(`${line}\r\n`.repeat(Math.ceil(65_536 / line.length)))
  const unsent = new Map<Socket<unknown>, Buffer>()
  let poured = 0

  function pour(socket: Socket<unknown>): void {
    let rest = unsent.get(socket) ?? piece
    while (poured < WHOLE_FLOOD) {
      const written = socket.write(rest)
      if (written > 0) poured += written
      rest = written > 0 ? rest.subarray(written) : rest
      unsent.set(socket, rest)
      if (rest.length > 0) return // `drain` goes on
      rest = piece
    }
    end(socket)
  }
  const end = (socket: Socket<unknown>) => void unsent.delete(socket)

  return {
    pour,
    /** To be called when the other side has room again. */
    drain: (socket: Socket<unknown>) => (unsent.has(socket) ? pour(socket) : undefined),
    /** To be called when the connection is closed. */
    end,
    is_into: (socket: Socket<unknown>) => unsent.has(socket),
    /** Nothing is poured any more: the connections are closed, or took the whole flood. */
    is_over: () => poured > 0 && unsent.size === 0,
    /** Bytes, of which some may wait in the socket's own memory. */
    poured: () => poured,
  }
}
