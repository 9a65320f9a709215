import { connect } from "node:net"

/** A WebSocket that never says a word: no pong, and nothing read while it sleeps. */
export function silentSocket(url: string, path: string, key: string) {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  let tail = Buffer.alloc(0)
  let bytes = 0
  const ended = new Promise<void>((resolve) => socket.once("close", () => resolve()))
  const opened = new Promise<void>((resolve) => socket.once("data", () => resolve()))
  socket.on("error", () => {})
  socket.on("data", (chunk: Buffer) => {
    bytes += chunk.length
    tail = Buffer.concat([tail, chunk]).subarray(-200)
  })
  socket.write(
    [
      `GET ${path} HTTP/1.1`,
      `Host: ${hostname}:${port}`,
      "Connection: Upgrade",
      "Upgrade: websocket",
      "Sec-WebSocket-Version: 13",
      `Sec-WebSocket-Key: ${btoa("0123456789abcdef")}`,
      "Sec-WebSocket-Protocol: svc.events.v1",
      `X-API-Key: ${key}`,
      "\r\n",
    ].join("\r\n"),
  )
  return {
    opened,
    ended,
    sleep: () => void socket.pause(),
    wake: () => void socket.resume(),
    bytes: () => bytes,
    /** The code of the close frame that came last. */
    code(): number | undefined {
      const at = tail.lastIndexOf(0x88)
      return at < 0 || at + 4 > tail.length ? undefined : tail.readUInt16BE(at + 2)
    },
    [Symbol.dispose]: () => void socket.destroy(),
  }
}
