import { Webhook } from "standardwebhooks"

export interface Received {
  headers: Record<string, string>
  body: string
}

export interface Receiver extends Disposable {
  url: string
  received: Received[]
  /** Ids, in the order in which they came. */
  ids(): string[]
}

type Judge = (delivery: Received) => number | Promise<number>

/** A receiver of webhooks on this machine, which answers with the status that `judge` gives. */
export function startReceiver(judge: Judge = () => 200): Receiver {
  const received: Received[] = []
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const headers = Object.fromEntries(request.headers)
      const delivery = { headers, body: await request.text() }
      received.push(delivery)
      return new Response("heard", { status: await judge(delivery) })
    },
  })
  return {
    url: `http://127.0.0.1:${server.port}/hooks`,
    received,
    ids: () => received.map(({ headers }) => headers["webhook-id"] ?? ""),
    [Symbol.dispose]: () => void server.stop(true),
  }
}

/** Whether the official library takes it for one of ours. */
export function isVerified(secret: string, { body, headers }: Received): boolean {
  try {
    new Webhook(secret).verify(body, headers)
    return true
  } catch {
    return false
  }
}
