import { expect, test } from "bun:test"
import { openStream } from "../../src/core/net"

const local = { allow_private: ["127.0.0.1"] }

/** A server that says a line at a time until its client is gone. */
function talking() {
  const gone = Promise.withResolvers<void>()
  const asked = Promise.withResolvers<(string | null)[]>()
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const { method, headers } = request
      asked.resolve([method, headers.get("authorization"), await request.text()])
      const body = new ReadableStream({
        async pull(controller) {
          controller.enqueue(new TextEncoder().encode("line\n"))
          await Bun.sleep(5)
        },
        cancel: () => gone.resolve(),
      })
      return new Response(body, { status: 201, headers: { "x-own": "yes" } })
    },
  })
  return {
    url: `http://127.0.0.1:${server.port}/talk`,
    asked: asked.promise,
    gone: gone.promise,
    [Symbol.asyncDispose]: () => server.stop(true),
  }
}

test("the status and headers come before the body has ended, and the body comes in pieces", async () => {
  await using server = talking()
  const headers = { authorization: "Bearer x" }
  const request = { url: server.url, method: "POST", headers, body: "{}", ...local }
  const answer = await openStream(request, new AbortController().signal)
  expect([answer.status, answer.headers.get("x-own")]).toEqual([201, "yes"])
  expect(await server.asked).toEqual(["POST", "Bearer x", "{}"])
  const texts: string[] = []
  for await (const piece of answer.body) {
    texts.push(new TextDecoder().decode(piece))
    if (texts.length === 3) break
  }
  expect(texts.join("")).toStartWith("line\nline\nline\n")
  await server.gone
})

test("an abort ends the connection, and the reader is told", async () => {
  await using server = talking()
  const stop = new AbortController()
  const { body } = await openStream({ url: server.url, ...local }, stop.signal)
  await body.next()
  stop.abort()
  const rest = async () => {
    for await (const _ of body);
  }
  expect(rest()).rejects.toMatchObject({ name: "NetError", kind: "timeout" })
  await server.gone
})

test("a redirect is not followed, and a packed body stays packed", async () => {
  const asked: string[] = []
  await using server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch(request) {
      asked.push(new URL(request.url).pathname)
      const headers = { location: "/other", "content-encoding": "gzip" }
      return new Response(Bun.gzipSync("text"), { status: 307, headers })
    },
  })
  const request = { url: `${server.url}one`, ...local }
  const { status, body } = await openStream(request, new AbortController().signal)
  expect(Buffer.concat(await Array.fromAsync(body))).toEqual(Buffer.from(Bun.gzipSync("text")))
  expect([status, asked]).toEqual([307, ["/one"]])
})

test("an abort ends the wait for a name server", async () => {
  const stop = new AbortController()
  const silent = () => new Promise<never>(() => {})
  const resolver = { a: silent, aaaa: silent }
  const request = { url: "http://model.example/", resolver, ...local }
  const asking = openStream(request, stop.signal)
  stop.abort()
  expect(asking).rejects.toMatchObject({ name: "NetError", kind: "timeout" })
})

test("an address of IPv6 may be allowed as a URL writes it", async () => {
  await using server = Bun.serve({ hostname: "::1", port: 0, fetch: () => new Response("text") })
  const request = { url: `http://[::1]:${server.port}/`, allow_private: ["[::1]"] }
  const { body } = await openStream(request, new AbortController().signal)
  expect(Buffer.concat(await Array.fromAsync(body)).toString()).toBe("text")
})

test("an address that no policy allows is not asked", async () => {
  await using server = talking()
  const request = { url: server.url, allow_private: [] }
  const asking = openStream(request, new AbortController().signal)
  expect(asking).rejects.toMatchObject({ kind: "blocked_address" })
})
