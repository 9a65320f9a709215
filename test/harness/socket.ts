import { NEVER_MS } from "./waits"

export interface Frame {
  type: string
  event?: { id: string; type: string; data: Record<string, unknown> }
  [name: string]: unknown
}

export interface TestSocket extends Disposable {
  /** What came, without the pings. */
  frames: Frame[]
  protocol: string
  /** The first frame, past or to come, that `match` accepts. */
  next(match: (frame: Frame) => boolean): Promise<Frame>
  /** A text leaves as it is, and bytes as a binary frame. */
  send(frame: unknown): void
  /** Breaks the connection without a goodbye. */
  cut(): void
  /** How it ended. */
  closed: Promise<{ code: number; reason: string }>
}

export interface Dial {
  key?: string
  token?: string
  protocols?: string[]
  headers?: Record<string, string>
  /** In place of the stream of events. */
  path?: string
}

/** Opens `/v1/events/stream` of a server, or another socket. Rejects where the upgrade is refused. */
export async function dial(url: string, query = "", given: Dial = {}): Promise<TestSocket> {
  const { key, token, protocols = ["svc.events.v1"], headers } = given
  const { path = "/v1/events/stream" } = given
  const proof = {
    ...(key && { "x-api-key": key }),
    ...(token && { authorization: `Bearer ${token}` }),
  }
  const address = `${url.replace("http", "ws")}${path}${query}`
  const options = { protocols, headers: { ...proof, ...headers } }
  const socket = new WebSocket(address, options as unknown as string[])
  const frames: Frame[] = []
  const waiting = new Set<(frame: Frame) => void>()
  socket.onmessage = ({ data }) => {
    const frame = JSON.parse(String(data)) as Frame
    if (frame.type !== "ping") frames.push(frame)
    for (const offer of [...waiting]) offer(frame)
  }
  const closed = new Promise<{ code: number; reason: string }>((resolve) => {
    socket.onclose = ({ code, reason }) => resolve({ code, reason })
  })
  await new Promise<void>((resolve, reject) => {
    socket.onopen = () => resolve()
    socket.onerror = (event) => reject(new Error((event as ErrorEvent).message))
  })
  return {
    frames,
    protocol: socket.protocol,
    next: (match) => firstOf(frames, waiting, match),
    send: (frame) => {
      const is_raw = typeof frame === "string" || frame instanceof Uint8Array
      socket.send(is_raw ? (frame as string) : JSON.stringify(frame))
    },
    cut: () => socket.terminate(),
    closed,
    [Symbol.dispose]: () => socket.close(),
  }
}

function firstOf(
  frames: Frame[],
  waiting: Set<(frame: Frame) => void>,
  match: (frame: Frame) => boolean,
): Promise<Frame> {
  const known = frames.find(match)
  if (known) return Promise.resolve(known)
  return new Promise((resolve, reject) => {
    const offer = (frame: Frame) => match(frame) && settle(() => resolve(frame))
    const late = setTimeout(() => settle(() => reject(new Error("no such frame"))), NEVER_MS)
    const settle = (finish: () => void) => {
      clearTimeout(late)
      waiting.delete(offer)
      finish()
    }
    waiting.add(offer)
  })
}

/** The answer to an upgrade over a real socket that was refused, as plain HTTP. */
export async function refusedUpgrade(
  url: string,
  query: string,
  headers: Record<string, string>,
  path = "/v1/events/stream",
): Promise<{ status: number; code: string | undefined; reason: unknown }> {
  const response = await fetch(`${url}${path}${query}`, {
    headers: {
      connection: "Upgrade",
      upgrade: "websocket",
      "sec-websocket-version": "13",
      "sec-websocket-key": btoa("0123456789abcdef"),
      "sec-websocket-protocol": "svc.events.v1",
      ...headers,
    },
  })
  const { error } = (await response.json()) as { error?: { code: string; details: object } }
  const reason = (error?.details as { reason?: string } | undefined)?.reason
  return { status: response.status, code: error?.code, reason }
}
