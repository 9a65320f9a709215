/**
 * The receiver of the webhook benchmarks, a process of its own: prints its port. `/hang` never
 * answers; `/stats` tells what arrived since the last time it was asked.
 */
interface Arrival {
  /** `path id`. */
  key: string
  /** Milliseconds since 1970, with fractions. */
  at: number
}

let arrivals: Arrival[] = []
let signed = 0

const receiver = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  idleTimeout: 0,
  async fetch(request) {
    const { pathname } = new URL(request.url)
    if (pathname === "/stats") {
      const told = { arrivals, signed }
      arrivals = []
      signed = 0
      return Response.json(told)
    }
    const at = performance.timeOrigin + performance.now()
    await request.arrayBuffer()
    if (pathname === "/hang") return await new Promise<Response>(() => {})
    if (request.headers.get("webhook-signature")?.startsWith("v1,")) signed += 1
    arrivals.push({ key: `${pathname} ${request.headers.get("webhook-id")}`, at })
    return new Response("ok")
  },
})
console.log(String(receiver.port))
