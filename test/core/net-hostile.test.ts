import { afterEach, describe, expect, test } from "bun:test"
import { gzipSync } from "node:zlib"
import { closeAll, closing, get, raw, refusal, serve } from "./net-fixture"

afterEach(closeAll)

describe("a hostile server", () => {
  test.each([301, 302, 303, 307, 308])("cannot redirect us (%d)", async (status) => {
    const canary = raw((socket) => socket.end())
    const headers = { Location: `http://127.0.0.1:${canary.port}/`, Refresh: "0; url=/x" }
    const port = serve(() => new Response(null, { status, headers }))
    expect((await get(`http://127.0.0.1:${port}/`)).status).toBe(status)
    expect(canary.connections()).toBe(0)
  })

  test("with an endless body is cut at the cap", async () => {
    const head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n"
    let closed = false
    const server = Bun.listen({
      hostname: "127.0.0.1",
      port: 0,
      socket: {
        data: (socket) => void socket.write(head + "x".repeat(100_000)),
        drain: (socket) => void socket.write("x".repeat(100_000)),
        close: () => {
          closed = true
        },
      },
    })
    closing.push(() => server.stop(true))
    const answer = await get(`http://127.0.0.1:${server.port}/`)
    expect(answer).toMatchObject({ status: 200, truncated: true })
    expect(answer.body).toHaveLength(1000)
    while (!closed) await Bun.sleep(10)
  })

  test("with a body of exactly the cap is whole", async () => {
    const port = serve(() => new Response("x".repeat(1000)))
    const answer = await get(`http://127.0.0.1:${port}/`)
    expect(answer).toMatchObject({ truncated: false })
    expect(answer.body).toHaveLength(1000)
  })

  test("that drips is cut by the deadline", async () => {
    const server = raw((socket) => {
      socket.write("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
      const timer = setInterval(() => socket.write("x"), 20)
      closing.push(() => clearInterval(timer))
    })
    const work = get(`http://127.0.0.1:${server.port}/`, { timeout_ms: 200 })
    expect(await refusal(work)).toBe("timeout")
  })

  test("that says nothing is cut by the deadline", async () => {
    const server = raw(() => undefined)
    const work = get(`http://127.0.0.1:${server.port}/`, { timeout_ms: 100 })
    expect(await refusal(work)).toBe("timeout")
  })

  test("cannot make us inflate a bomb", async () => {
    const bomb = gzipSync(Buffer.alloc(5_000_000))
    const headers = { "Content-Encoding": "gzip" }
    const port = serve(() => new Response(bomb, { headers }))
    const answer = await get(`http://127.0.0.1:${port}/`, { capture_bytes: 1_000_000 })
    expect(answer.body).toHaveLength(bomb.length)
  })

  test.each([
    ["ten thousand headers", `HTTP/1.1 200 OK\r\n${"a: b\r\n".repeat(10_000)}\r\n`],
    ["garbage", "what is this?\r\n\r\n"],
    ["nothing", ""],
  ])("that answers with %s is an error of the connection", async (_, text) => {
    const server = raw((socket) => {
      socket.write(text)
      socket.end()
    })
    expect(await refusal(get(`http://127.0.0.1:${server.port}/`))).toBe("connection")
  })

  test("that speaks no TLS, and one that is not there", async () => {
    const port = serve(() => new Response("plain"))
    expect(await refusal(get(`https://127.0.0.1:${port}/`))).toBe("tls")
    expect(await refusal(get("http://127.0.0.1:1/"))).toBe("connection")
  })
})
