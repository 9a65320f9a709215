export interface ServiceRequest {
  method: string
  path: string
  authorization: string
  content_type: string | null
  body: unknown
}

interface ServiceAnswer {
  status: number
  body: object | string
}

type Answer = (request: ServiceRequest) => ServiceAnswer | Promise<ServiceAnswer>

/** An SMS service that takes JSON. It keeps every request. */
export function textService(answer: Answer) {
  const requests: ServiceRequest[] = []
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const { headers, method } = request
      const { pathname, search } = new URL(request.url)
      const text = await request.text()
      const asked: ServiceRequest = {
        method,
        path: pathname + search,
        authorization: atob(headers.get("authorization")?.replace(/^Basic /, "") ?? ""),
        content_type: headers.get("content-type"),
        body: text === "" ? null : JSON.parse(text),
      }
      requests.push(asked)
      const { status, body } = await answer(asked)
      return new Response(typeof body === "string" ? body : JSON.stringify(body), { status })
    },
  })
  return {
    url: `http://127.0.0.1:${server.port}`,
    requests,
    [Symbol.dispose]: () => void server.stop(true),
  }
}
