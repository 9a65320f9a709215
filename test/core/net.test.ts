import { afterEach, describe, expect, test } from "bun:test"
import { listening, type NetError } from "../../src/core/destination"
import { assertPublic } from "../../src/core/net"
import { cert } from "./certificate"
import { closeAll, closing, get, names, raw, refusal, serve } from "./net-fixture"

afterEach(closeAll)

describe("an ordinary request", () => {
  test("carries method, path, headers and body, and the name in Host", async () => {
    const port = serve(async (incoming) =>
      Response.json({
        method: incoming.method,
        path: new URL(incoming.url).pathname + new URL(incoming.url).search,
        headers: Object.fromEntries(incoming.headers),
        body: await incoming.text(),
      }),
    )
    const answer = await get(`http://hooks.test:${port}/a%20b?c=d#e`, {
      method: "POST",
      headers: { "X-Own": "1", Host: "evil.test", "Content-Length": "999", "User-Agent": "Mine" },
      body: "hällo",
      resolver: names("127.0.0.1"),
    })
    const seen = JSON.parse(new TextDecoder().decode(answer.body))
    expect(seen).toMatchObject({ method: "POST", path: "/a%20b?c=d", body: "hällo" })
    expect(seen.headers).toMatchObject({ host: `hooks.test:${port}`, "x-own": "1" })
    expect(seen.headers).toMatchObject({ "user-agent": "Mine", "accept-encoding": "identity" })
    expect(answer).toMatchObject({ status: 200, truncated: false })
    expect(answer.headers.get("content-type")).toContain("application/json")
    expect(answer.duration_ms).toBeGreaterThanOrEqual(0)
  })

  test.each([204, 404, 500])("gives %d as an answer, not as an error", async (status) => {
    const port = serve(() => new Response(null, { status }))
    expect((await get(`http://127.0.0.1:${port}/`)).status).toBe(status)
  })

  test("uses no proxy of the environment", async () => {
    const proxy = raw((socket) => socket.end())
    const before = process.env.HTTP_PROXY
    process.env.HTTP_PROXY = `http://127.0.0.1:${proxy.port}`
    try {
      const port = serve(() => new Response("direct"))
      expect((await get(`http://127.0.0.1:${port}/`)).status).toBe(200)
      expect(proxy.connections()).toBe(0)
    } finally {
      if (before === undefined) delete process.env.HTTP_PROXY
      else process.env.HTTP_PROXY = before
    }
  })

  test("checks the certificate against the name, not against the address", async () => {
    const port = serve(() => new Response("safe"), true)
    const resolver = names("127.0.0.1")
    const good = await get(`https://hooks.test:${port}/`, { resolver, ca: cert })
    expect(new TextDecoder().decode(good.body)).toBe("safe")
    const dotted = await get(`https://hooks.test.:${port}/`, { resolver, ca: cert })
    expect(dotted.status).toBe(200)
    expect(await refusal(get(`https://other.test:${port}/`, { resolver, ca: cert }))).toBe("tls")
    expect(await refusal(get(`https://hooks.test:${port}/`, { resolver }))).toBe("tls")
  })
})

describe("what is refused before any connection", () => {
  test.each(["", "no url", "ftp://x/", "file:///etc/passwd", "http://a:b@x/", "http://a@x/"])(
    "%j is no URL for us",
    async (url) => expect(await refusal(get(url))).toBe("invalid_url"),
  )

  test.each([
    "127.0.0.1",
    "0x7f.1",
    "2130706433",
    "017700000001",
    "127.1",
    "①②⑦.⓪.⓪.①",
    "localhost",
    "LOCALHOST.",
    "a.localhost",
    "0.0.0.0",
    "[::1]",
    "[::ffff:7f00:1]",
    "[::ffff:127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "[2002:7f00:1::]",
    "169.254.169.254",
    "10.0.0.1",
  ])("%s in every spelling", async (host) => {
    const canary = raw((socket) => socket.end())
    const url = `http://${host}:${canary.port}/`
    expect(await refusal(get(url, { allow_private: [] }))).toBe("blocked_address")
    expect(canary.connections()).toBe(0)
  })

  test("a name with one bad address among good ones", async () => {
    const canary = raw((socket) => socket.end())
    const url = `http://both.test:${canary.port}/`
    const both = { a: async () => ["8.8.8.8"], aaaa: async () => ["::1"] }
    expect(await refusal(get(url, { resolver: both, allow_private: [] }))).toBe("blocked_address")
    const second = names("9.9.9.9", "127.0.0.1")
    expect(await refusal(get(url, { resolver: second, allow_private: [] }))).toBe("blocked_address")
    expect(canary.connections()).toBe(0)
  })

  test("a name whose answers alternate never reaches the inner address", async () => {
    const canary = raw((socket) => socket.end())
    const public_place = "127.0.0.2"
    let asked = 0
    const rebinding = {
      a: async () => [asked++ % 2 === 0 ? public_place : "127.0.0.1"],
      aaaa: async () => [] as string[],
    }
    const tries = Array.from({ length: 200 }, () =>
      refusal(
        get(`http://rebind.test:${canary.port}/`, {
          resolver: rebinding,
          allow_private: [`${public_place}/32`],
        }),
      ),
    )
    const kinds = await Promise.all(tries)
    // One question a name for each request: what was judged is what is connected to.
    expect(asked).toBe(200)
    expect(kinds.filter((kind) => kind === "blocked_address")).toHaveLength(100)
    expect(kinds.filter((kind) => kind === "connection")).toHaveLength(100)
    expect(canary.connections()).toBe(0)
  })

  test("our own listeners, even where loopback is allowed", async () => {
    const port = serve(() => new Response("loop"))
    closing.push(listening("127.0.0.1", port))
    expect(await refusal(get(`http://127.0.0.1:${port}/`))).toBe("blocked_address")
    expect(await refusal(get(`http://localhost:${port}/`))).toBe("blocked_address")
  })
})

describe("a connection that was kept open and is closed meanwhile", () => {
  /** Answers the first request of each connection, and cuts it at the second. */
  function forgetful() {
    const asked: number[] = []
    const server = Bun.listen<{ requests: number }>({
      hostname: "127.0.0.1",
      port: 0,
      socket: {
        open(socket) {
          socket.data = { requests: 0 }
        },
        data(socket) {
          asked.push(++socket.data.requests)
          if (socket.data.requests > 1) socket.terminate()
          else socket.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        },
      },
    })
    closing.push(() => server.stop(true))
    return { url: `http://127.0.0.1:${server.port}/`, asked }
  }

  test.each([
    ["GET", {}],
    ["POST", { repeatable: true }],
  ])("is replaced by a new one: %s %j", async (method, more) => {
    const { url, asked } = forgetful()
    for (let round = 0; round < 4; round++) {
      expect((await get(url, { method, ...more })).status).toBe(200)
    }
    // Each time but the first: once over the old connection, once over a new one.
    expect(asked.filter((nth) => nth === 1)).toHaveLength(4)
  })

  test("is an error where the receiver could not tell a repetition", async () => {
    const { url, asked } = forgetful()
    expect((await get(url, { method: "POST" })).status).toBe(200)
    expect(await refusal(get(url, { method: "POST" }))).toBe("connection")
    expect(asked).toEqual([1, 2])
  })

  test("is told from one that never was: then nothing left", async () => {
    const server = raw((socket) => socket.terminate())
    const closed = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } })
    closed.stop(true)
    const unsent = async (port: number) => {
      const asking = get(`http://127.0.0.1:${port}/`, { method: "POST", once: true })
      return ((await asking.catch((error) => error)) as NetError).unsent
    }
    expect([await unsent(closed.port), await unsent(server.port)]).toEqual([true, false])
  })

  test("is no excuse for a server that never answered", async () => {
    const server = raw((socket) => socket.terminate())
    const url = `http://127.0.0.1:${server.port}/`
    for (let round = 0; round < 2; round++) {
      const work = get(url, { method: "POST", repeatable: true })
      expect(await refusal(work)).toBe("connection")
    }
    expect(server.connections()).toBe(2)
  })
})

describe("names", () => {
  test("without an address, and those that cannot be resolved, are errors of DNS", async () => {
    expect(await refusal(get("http://gone.test/", { resolver: names() }))).toBe("dns")
    const broken = () => Promise.reject(new Error("SERVFAIL"))
    const resolver = { a: broken, aaaa: broken }
    expect(await refusal(get("http://broken.test/", { resolver }))).toBe("dns")
  })

  test("one of the two questions may fail", async () => {
    const port = serve(() => new Response("ok"))
    const resolver = { a: async () => ["127.0.0.1"], aaaa: () => Promise.reject(new Error("no")) }
    expect((await get(`http://x.test:${port}/`, { resolver })).status).toBe(200)
  })

  test("that take for ever are cut by the deadline", async () => {
    const never = () => new Promise<string[]>(() => undefined)
    const work = get("http://slow.test/", { resolver: { a: never, aaaa: never }, timeout_ms: 50 })
    expect(await refusal(work)).toBe("timeout")
  })
})

describe("vetting alone", () => {
  const limits = { allow_private: [] as string[] }
  const vetted = (url: string, resolver = names("9.9.9.9"), ms = 5000) =>
    assertPublic(url, { ...limits, resolver }, AbortSignal.timeout(ms))

  test("connects to nobody, and passes what is public", async () => {
    const canary = raw((socket) => socket.end())
    await vetted(`http://public.test:${canary.port}/`)
    expect(await refusal(vetted(`http://127.0.0.1:${canary.port}/`))).toBe("blocked_address")
    expect(await refusal(vetted("http://a@public.test/"))).toBe("invalid_url")
    expect(await refusal(vetted("http://gone.test/", names()))).toBe("dns")
    expect(canary.connections()).toBe(0)
  })

  test("waits for the names no longer than it is told", async () => {
    const never = () => new Promise<string[]>(() => undefined)
    expect(await refusal(vetted("http://slow.test/", { a: never, aaaa: never }, 30))).toBe(
      "timeout",
    )
    const late = assertPublic(
      "http://slow.test/",
      { ...limits, resolver: names("9.9.9.9") },
      AbortSignal.abort(),
    )
    expect(await refusal(late)).toBe("timeout")
  })
})

test("a header with a line break is the caller's mistake", () => {
  const headers = { "X-Bad": "a\r\nb: c" }
  expect(get("http://127.0.0.1:1/", { headers })).rejects.toBeInstanceOf(TypeError)
})
