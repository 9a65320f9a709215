/** A request as a gateway got it. */
export interface GatewayRequest {
  method: string
  path: string
  headers: Headers
  body: string
}

type Answer = (request: GatewayRequest) => Response | Promise<Response>

/** Somebody's SMS gateway on the loopback: keeps every request, and answers as it is told. */
export function gatewayServer(answer: Answer = () => new Response("0: Accepted for delivery")) {
  const requests: GatewayRequest[] = []
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const { pathname, search } = new URL(request.url)
      const { method, headers } = request
      const asked = { method, path: pathname + search, headers, body: await request.text() }
      requests.push(asked)
      return answer(asked)
    },
  })
  return {
    url: `http://127.0.0.1:${server.port}`,
    requests,
    [Symbol.dispose]: () => void server.stop(true),
  }
}
