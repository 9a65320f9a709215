import { connect } from "node:net"

/** A WebSocket that never says a word: no pong, and nothing read while it sleeps. */
export function silentSocket(url: string, path: string, key: string, protocol = "svc.events.v1") {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  const chunks: Buffer[] = []
  let tail = Buffer.alloc(0)
  let bytes = 0
  const ended = new Promise<void>((resolve) => socket.once("close", () => resolve()))
  const opened = new Promise<void>((resolve) => socket.once("data", () => resolve()))
  socket.on("error", () => {})
  socket.on("data", (chunk: Buffer) => {
    chunks.push(chunk)
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
      `Sec-WebSocket-Protocol: ${protocol}`,
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
    /** The text frames that have come as a whole. */
    texts: () => textsOf(Buffer.concat(chunks)),
    /** The code of the close frame that came last. */
    code(): number | undefined {
      const at = tail.lastIndexOf(0x88)
      return at < 0 || at + 4 > tail.length ? undefined : tail.readUInt16BE(at + 2)
    },
    [Symbol.dispose]: () => void socket.destroy(),
  }
}

const TEXT = 0x81

/** RFC 6455 section 5.2: frames of a server are not masked, and ours are never in parts. */
function textsOf(bytes: Buffer): string[] {
  const texts: string[] = []
  for (let at = bytes.indexOf("\r\n\r\n") + 4; at + 10 <= bytes.length; ) {
    const short = bytes.readUInt8(at + 1)
    const [head, length] =
      short === 127
        ? [10, Number(bytes.readBigUInt64BE(at + 2))]
        : short === 126
          ? [4, bytes.readUInt16BE(at + 2)]
          : [2, short]
    const end = at + head + length
    if (bytes[at] === TEXT && end <= bytes.length)
      texts.push(bytes.toString("utf8", at + head, end))
    at = end
  }
  return texts
}
