import { expect, test } from "bun:test"
import { openStream } from "../../src/core/net"
import { gatewayServer } from "../fakes/gateway"

type Request = Partial<Parameters<typeof openStream>[0]> & { url: string }

const open = (request: Request, signal = new AbortController().signal) =>
  openStream({ allow_private: ["127.0.0.1"], ...request }, signal)

/** A server that says a line at a time until its client is gone. */
function talking() {
  const gone = Promise.withResolvers<void>()
  const server = gatewayServer(() => {
    const body = new ReadableStream({
      async pull(controller) {
        controller.enqueue(new TextEncoder().encode("line\n"))
        await Bun.sleep(5)
      },
      cancel: () => gone.resolve(),
    })
    return new Response(body, { status: 201, headers: { "x-own": "yes" } })
  })
  return Object.assign(server, { gone: gone.promise })
}

test("the status and headers come before the body has ended, and the body comes in pieces", async () => {
  using server = talking()
  const request = { method: "POST", headers: { authorization: "Bearer x" }, body: "{}" }
  const answer = await open({ url: server.url, ...request })
  expect([answer.status, answer.headers.get("x-own")]).toEqual([201, "yes"])
  expect(server.requests[0]).toMatchObject({ method: "POST", body: "{}" })
  expect(server.requests[0]?.headers.get("authorization")).toBe("Bearer x")
  const texts: string[] = []
  for await (const piece of answer.body) {
    texts.push(new TextDecoder().decode(piece))
    if (texts.length === 3) break
  }
  expect(texts.join("")).toStartWith("line\nline\nline\n")
  await server.gone
})

test("an abort ends the connection, and the reader is told", async () => {
  using server = talking()
  const stop = new AbortController()
  const { body } = await open(server, stop.signal)
  await body.next()
  stop.abort()
  expect(Array.fromAsync(body)).rejects.toMatchObject({ name: "NetError", kind: "timeout" })
  await server.gone
})

test("a redirect is not followed, and a packed body stays packed", async () => {
  const packed = Bun.gzipSync("text")
  const headers = { location: "/other", "content-encoding": "gzip" }
  using server = gatewayServer(() => new Response(packed, { status: 307, headers }))
  const { status, body } = await open(server)
  expect(Buffer.concat(await Array.fromAsync(body))).toEqual(Buffer.from(packed))
  expect([status, server.requests.length]).toEqual([307, 1])
})

test("an abort ends the wait for a name server", async () => {
  const stop = new AbortController()
  const silent = () => new Promise<never>(() => {})
  const resolver = { a: silent, aaaa: silent }
  const asking = open({ url: "http://model.example/", resolver }, stop.signal)
  stop.abort()
  expect(asking).rejects.toMatchObject({ name: "NetError", kind: "timeout" })
})

test("an address of IPv6 may be allowed as a URL writes it", async () => {
  await using server = Bun.serve({ hostname: "::1", port: 0, fetch: () => new Response("text") })
  const url = `http://[::1]:${server.port}/`
  const { body } = await open({ url, allow_private: ["[::1]"] })
  expect(Buffer.concat(await Array.fromAsync(body)).toString()).toBe("text")
})

test("an address that no policy allows is not asked", async () => {
  using server = talking()
  const asking = open({ url: server.url, allow_private: [] })
  expect(asking).rejects.toMatchObject({ kind: "blocked_address" })
})
