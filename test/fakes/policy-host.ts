/** A host that serves one MTA-STS policy over HTTPS, and what it was asked. */
export function policyHost(
  certificate: { key: string; cert: string },
  answer: () => { body: string; status?: number; type?: string },
) {
  let asked = 0
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    tls: certificate,
    fetch(request) {
      asked++
      const { pathname } = new URL(request.url)
      if (pathname !== "/.well-known/mta-sts.txt") return new Response("", { status: 404 })
      const { body, status = 200, type = "text/plain" } = answer()
      return new Response(body, { status, headers: { "content-type": type } })
    },
  })
  return {
    port: server.port ?? 0,
    asked: () => asked,
    [Symbol.dispose]: () => void server.stop(true),
  }
}
