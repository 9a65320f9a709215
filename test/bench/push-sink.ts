/**
 * Takes push messages as APNs does (HTTP/2) and as a browser's service does (HTTPS), and counts both: `push-sink.ts
 * KEY CERT` prints its addresses. GET tells how many came, and when the `first`th and the last one did. In a process of
 * its own, as a real one is.
 */
import { readFileSync } from "node:fs"
import { createSecureServer, type ServerHttp2Stream } from "node:http2"
import type { AddressInfo } from "node:net"

const [key = "", cert = ""] = process.argv.slice(2).map((file) => readFileSync(file, "utf8"))

let moments: number[] = []
const came = () => void moments.push(Date.now())

const apns = createSecureServer({ key, cert })
apns.on("stream", (stream: ServerHttp2Stream, headers) => {
  stream.on("error", () => {})
  stream.on("data", () => {})
  stream.on("end", () => {
    came()
    stream.respond({ ":status": 200, "apns-id": `${headers["apns-id"]}` }, { endStream: true })
  })
})
await new Promise<void>((resolve) => apns.listen(0, "127.0.0.1", resolve))

const web = Bun.serve({
  ...{ hostname: "127.0.0.1", port: 0, tls: { key, cert } },
  async fetch(request) {
    await request.arrayBuffer()
    came()
    return new Response(null, { status: 201 })
  },
})

const told = Bun.serve({
  ...{ hostname: "127.0.0.1", port: 0 },
  fetch(request) {
    const { searchParams } = new URL(request.url)
    const first = Number(searchParams.get("first"))
    const answer = { count: moments.length, from: moments[first], last: moments.at(-1) }
    if (request.method === "DELETE") moments = []
    return Response.json(answer)
  },
})

const at = (scheme: string, port: number | undefined) => `${scheme}://127.0.0.1:${port}`
const { port } = apns.address() as AddressInfo
console.log(
  JSON.stringify({
    ...{ apns: at("https", port), web: at("https", web.port), told: at("http", told.port) },
  }),
)
