import type { Socket } from "bun"

/** What a gateway of texts does with one request. */
export type GatewayStep =
  | "take"
  | "refuse"
  | "forbid"
  | "throttle"
  | "break"
  | "hang"
  | "close before the answer"
  | "close after the answer"

export interface GatewayReceipt {
  to: string
  step: GatewayStep
  /** The value of `round` at that moment. */
  round: number
}

/** Steps after which the gateway has the text. */
const HAS_IT: readonly GatewayStep[] = [
  "take",
  "hang",
  "close before the answer",
  "close after the answer",
]

const ANSWERS: Partial<Record<GatewayStep, [status: number, body: object]>> = {
  refuse: [400, { code: 21211, message: "no such number" }],
  forbid: [400, { code: 21408, message: "not to this region" }],
  throttle: [429, { code: 20429, message: "too fast" }],
  break: [503, { code: 20503, message: "down" }],
}

interface FaultyOptions {
  port?: number
  stepFor?: (to: string) => GatewayStep
  /** How long an answer takes: the time in which a client may die. */
  delay_ms?: number
}

/**
 * A gateway over HTTP that misbehaves on the level of its connections. It reads `To` from a form or `to`
 * from JSON, and keeps which texts it has. A text counts as soon as its request is there.
 */
export function faultyGateway({ port = 0, stepFor = () => "take", delay_ms = 0 }: FaultyOptions) {
  const receipts: GatewayReceipt[] = []
  const gateway = { round: 0 }

  const answer = (socket: Socket<string>, step: GatewayStep) => {
    if (step === "hang") return
    if (step === "close before the answer") return void socket.terminate()
    const sid = `SM${String(receipts.length).padStart(32, "0")}`
    const [status, body] = ANSWERS[step] ?? [201, { sid, status: "queued" }]
    const text = JSON.stringify(body)
    const head = `HTTP/1.1 ${status} Answer\r\nContent-Type: application/json\r\nContent-Length: ${text.length}`
    socket.write(`${head}\r\n\r\n${text}`)
    if (step === "close after the answer") socket.end()
  }

  const hear = (socket: Socket<string>, body: string) => {
    const json = body.startsWith("{") ? (JSON.parse(body) as { to: string }) : undefined
    const to = json?.to ?? new URLSearchParams(body).get("To") ?? ""
    const step = stepFor(to)
    receipts.push({ to, step, round: gateway.round })
    setTimeout(() => answer(socket, step), delay_ms)
  }

  const server = Bun.listen<string>({
    hostname: "127.0.0.1",
    port,
    socket: {
      open(socket) {
        socket.data = ""
      },
      data(socket, chunk) {
        socket.data += chunk.toString("latin1")
        for (;;) {
          const end = socket.data.indexOf("\r\n\r\n") + 4
          const length = Number(/^content-length: *(\d+)/im.exec(socket.data)?.[1] ?? 0)
          if (end < 4 || socket.data.length < end + length) return
          const body = socket.data.slice(end, end + length)
          socket.data = socket.data.slice(end + length)
          hear(socket, body)
        }
      },
    },
  })
  return Object.assign(gateway, {
    url: `http://127.0.0.1:${server.port}`,
    port: server.port,
    /** Of the texts that it has. */
    taken: () => receipts.filter(({ step }) => HAS_IT.includes(step)),
    receipts,
    [Symbol.dispose]: () => server.stop(true),
  })
}
