import { NetError, type NetRequest, request } from "../../src/core/net"
import { cert, key } from "./certificate"

/** What is to be closed after the test that runs. */
export const closing: (() => unknown)[] = []

export function closeAll(): void {
  for (const close of closing.splice(0)) close()
}

export const loopback = ["127.0.0.0/8"]

/** Names as the test wants them, so that no name server is asked. */
export const names = (...a: string[]) => ({ a: async () => a, aaaa: async () => [] as string[] })

export function serve(
  answer: (request: Request) => Response | Promise<Response>,
  tls = false,
): number {
  const options = { hostname: "127.0.0.1", port: 0, fetch: answer, idleTimeout: 30 }
  const server = tls ? Bun.serve({ ...options, tls: { cert, key } }) : Bun.serve(options)
  closing.push(() => server.stop(true))
  return server.port ?? 0
}

/** Writes whatever it likes to whoever connects, and counts them. */
export function raw(greet: (socket: Bun.Socket<undefined>) => unknown) {
  let connections = 0
  const server = Bun.listen<undefined>({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      open() {
        connections += 1
      },
      data(socket) {
        greet(socket)
      },
    },
  })
  closing.push(() => server.stop(true))
  return { port: server.port, connections: () => connections }
}

export function get(url: string, more: Partial<NetRequest> = {}) {
  const limits = { timeout_ms: 20_000, capture_bytes: 1000, allow_private: loopback }
  return request({ url, ...limits, ...more })
}

export async function refusal(work: Promise<unknown>): Promise<string> {
  const error = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  return error instanceof NetError ? error.kind : `not a NetError but ${error}`
}
