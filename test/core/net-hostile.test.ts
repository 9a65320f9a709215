import { afterEach, describe, expect, test } from "bun:test"
import { connect } from "node:net"
import { hostileReceiver, type Misdeed, misdeeds } from "../fakes/hostile-receiver"
import { authority, expired, issued, issued_key } from "./authority"
import { cert, key } from "./certificate"
import { closeAll, closing, get, names, raw, refusal, serve } from "./net-fixture"

afterEach(closeAll)

const CAP = 1000

describe("a hostile receiver", () => {
  test.each<[Misdeed, string]>([
    ["endless headers", "connection"],
    ["endless header line", "connection"],
    ["endless interim answers", "timeout"],
    ["two lengths", "connection"],
    ["one byte a second", "timeout"],
    ["slow headers", "timeout"],
    ["silence", "timeout"],
    ["ten thousand headers", "connection"],
    ["huge header line", "connection"],
    ["early close", "connection"],
    ["half an answer", "connection"],
    ["garbage", "connection"],
  ])("with %s gives no answer: %s", async (misdeed, kind) => {
    using receiver = hostileReceiver(misdeed)
    const timeout_ms = kind === "timeout" ? 300 : 20_000
    const work = get(receiver.url, { method: "POST", body: "{}", timeout_ms })
    expect(await refusal(work)).toBe(kind)
    expect(receiver.connections()).toBe(1)
  })

  test.each<Misdeed>(["endless body", "endless chunks", "length and chunks", "gzip bomb"])(
    "with %s is cut at the cap",
    async (misdeed) => {
      using receiver = hostileReceiver(misdeed)
      const answer = await get(receiver.url, { capture_bytes: CAP })
      expect(answer).toMatchObject({ status: 200, truncated: true })
      expect(answer.body).toHaveLength(CAP)
      const sent = receiver.sent()
      await Bun.sleep(50) // whatever was on its way has left by now
      expect(receiver.sent() - sent).toBeLessThan(20_000_000)
    },
  )

  test("with a body of exactly the cap is whole, one byte more is not", async () => {
    const exact = serve(() => new Response("x".repeat(CAP)))
    const answer = await get(`http://127.0.0.1:${exact}/`, { capture_bytes: CAP })
    expect([answer.body.length, answer.truncated]).toEqual([CAP, false])
    const longer = serve(() => new Response("x".repeat(CAP + 1)))
    const cut = await get(`http://127.0.0.1:${longer}/`, { capture_bytes: CAP })
    expect([cut.body.length, cut.truncated]).toEqual([CAP, true])
  })

  test("cannot make us inflate a bomb", async () => {
    using receiver = hostileReceiver("gzip bomb")
    const answer = await get(receiver.url, { capture_bytes: 1_000_000 })
    expect(answer.truncated).toBe(false)
    expect(answer.body.length).toBeLessThan(200_000)
    expect(answer.headers.get("content-encoding")).toBe("gzip")
  })

  test("that speaks no TLS, and one that is not there", async () => {
    const port = serve(() => new Response("plain"))
    expect(await refusal(get(`https://127.0.0.1:${port}/`))).toBe("tls")
    expect(await refusal(get("http://127.0.0.1:1/"))).toBe("connection")
  })

  test("costs no memory, however often it is asked", async () => {
    const receivers = misdeeds.map((misdeed) => hostileReceiver(misdeed))
    const child = Bun.spawn({
      cmd: [
        process.execPath,
        `${import.meta.dir}/net-flood.ts`,
        "20",
        ...receivers.map((r) => r.url),
      ],
      stdout: "pipe",
      stderr: "inherit",
    })
    const { grown_mb } = (await child.stdout.json()) as { grown_mb: number }
    for (const receiver of receivers) receiver[Symbol.dispose]()
    expect(grown_mb).toBeLessThan(50)
  })
})

describe("a redirect inwards is an answer like any other", () => {
  test.each([300, 301, 302, 303, 304, 307, 308])("%d", async (status) => {
    const canary = raw((socket) => socket.end())
    for (const host of ["127.0.0.1", "localhost", "[::1]"]) {
      const place = `http://${host}:${canary.port}/`
      for (const target of [place, place.replace("http:", "")]) {
        const headers = {
          Location: target,
          Refresh: `0; url=${target}`,
          "Content-Location": target,
        }
        const port = serve(() => new Response(null, { status, headers }))
        expect((await get(`http://127.0.0.1:${port}/`)).status).toBe(status)
      }
    }
    expect(canary.connections()).toBe(0)
  })

  test.each<Misdeed>(["redirect", "refresh"])("by hand: %s", async (misdeed) => {
    const canary = raw((socket) => socket.end())
    using receiver = hostileReceiver(misdeed, `http://localhost:${canary.port}/`)
    const answer = await get(receiver.url, { method: "POST", body: "{}" })
    expect([200, 307]).toContain(answer.status)
    expect(canary.connections()).toBe(0)
  })
})

describe("a certificate", () => {
  const url = (port: number, name = "hooks.test") => `https://${name}:${port}/`
  const resolver = names("127.0.0.1")
  const server = (tls: { cert: string; key: string }) => {
    const running = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      tls,
      fetch: () => new Response("ok"),
    })
    closing.push(() => running.stop(true))
    return running.port ?? 0
  }

  test("of a known authority, for the name, in its time is taken", async () => {
    const port = server({ cert: issued, key: issued_key })
    expect((await get(url(port), { resolver, ca: authority })).status).toBe(200)
  })

  test("for another name is refused, also over a connection that is open already", async () => {
    const port = server({ cert: issued, key: issued_key })
    expect((await get(url(port), { resolver, ca: authority })).status).toBe(200)
    const other = get(url(port, "other.test"), { resolver, ca: authority })
    expect(await refusal(other)).toBe("tls")
    expect(await refusal(get(url(port), { resolver, ca: cert }))).toBe("tls")
    expect(await refusal(get(url(port), { resolver }))).toBe("tls")
    expect(await refusal(get(`https://127.0.0.1:${port}/`, { ca: authority }))).toBe("tls")
  })

  test("that has run out, and one signed by itself, are refused", async () => {
    const late = server({ cert: expired, key: issued_key })
    expect(await refusal(get(url(late), { resolver, ca: authority }))).toBe("tls")
    const own = server({ cert, key })
    expect(await refusal(get(url(own), { resolver, ca: authority }))).toBe("tls")
    expect((await get(url(own), { resolver, ca: cert })).status).toBe(200)
  })
})

describe("a host that never completes a connection", () => {
  /** Its process sleeps and its queue of connections is full: a SYN gets no answer. */
  async function deafHost() {
    const program = `const server = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } })
      console.log(server.port)
      process.kill(process.pid, "SIGSTOP")`
    const child = Bun.spawn({ cmd: [process.execPath, "-e", program], stdout: "pipe" })
    closing.push(() => child.kill("SIGKILL"))
    const reader = child.stdout.getReader()
    const port = Number(new TextDecoder().decode((await reader.read()).value))
    for (let deaf = false; !deaf; ) {
      const socket = connect(port, "127.0.0.1")
      closing.push(() => socket.destroy())
      socket.on("error", () => undefined)
      const connected = new Promise<boolean>((resolve) =>
        socket.once("connect", () => resolve(true)),
      )
      deaf = !(await Promise.race([connected, Bun.sleep(300).then(() => false)]))
    }
    return port
  }

  test("is given up after the time for connecting, not after the whole", async () => {
    const port = await deafHost()
    const work = get(`http://127.0.0.1:${port}/`, { connect_ms: 200, timeout_ms: 15_000 })
    const error = await work.catch((reason: unknown) => reason)
    expect(error).toMatchObject({ kind: "timeout", message: expect.stringContaining("200 ms") })
  })

  test("is another thing than one that thinks for long", async () => {
    const port = serve(async () => {
      await Bun.sleep(1500)
      return new Response("at last")
    })
    expect((await get(`http://127.0.0.1:${port}/`, { connect_ms: 1000 })).status).toBe(200)
  })
})
