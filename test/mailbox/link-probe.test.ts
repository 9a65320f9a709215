import { afterAll, describe, expect, test } from "bun:test"
import { createServer } from "node:net"
import { listening } from "../../src/core/destination"
import { DnsError } from "../../src/core/dns"
import { probeLinks } from "../../src/mailbox/check-mail"
import { linkTargets } from "../../src/mailbox/link-targets"

const asked: string[] = []
const server = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  idleTimeout: 0,
  fetch(request) {
    const { pathname } = new URL(request.url)
    asked.push(`${request.method} ${pathname}`)
    if (pathname === "/ok") return new Response("fine")
    if (pathname === "/no-head" && request.method === "HEAD")
      return new Response(null, { status: 405 })
    if (pathname === "/no-head") return new Response("fine")
    if (pathname === "/moved") return redirect("/ok")
    if (pathname === "/round") return redirect("/round")
    if (pathname === "/inward") return redirect("http://10.0.0.1/secret")
    if (pathname === "/to-unsubscribe") return redirect("/unsubscribe?me=1")
    if (pathname === "/odd") return redirect("ftp://127.0.0.1/x")
    if (pathname === "/slow") return new Promise<Response>(() => {})
    const [, refused] = /^\/answers\/(\d+)$/.exec(pathname) ?? []
    if (refused) return new Response(null, { status: Number(refused) })
    if (pathname === "/to-nowhere") return redirect("http://elsewhere.test/")
    if (pathname === "/endless" && request.method === "GET") return new Response(endless())
    return new Response(null, { status: pathname === "/endless" ? 501 : 404 })
  },
})
afterAll(() => server.stop(true))

const redirect = (to: string) => new Response(null, { status: 302, headers: { location: to } })

/** A body that never ends. */
const endless = () =>
  new ReadableStream({ pull: (stream) => stream.enqueue(new Uint8Array(64 * 1024)) })

const at = (path: string) => `http://127.0.0.1:${server.port}${path}`
const target = (url: string, is_unsubscribe = false) => ({ url, is_unsubscribe })
const HERE = { allow_private: ["127.0.0.1"], timeout_ms: 20_000 }

async function probe(path: string, rules: Parameters<typeof probeLinks>[1] = HERE) {
  asked.length = 0
  const [found] = await probeLinks([target(at(path))], rules)
  return { ...found, asked: [...asked] }
}

describe("a link", () => {
  test("is asked by HEAD, and by GET where that is refused", async () => {
    expect(await probe("/ok")).toMatchObject({ status: 200, ok: true, asked: ["HEAD /ok"] })
    const other = await probe("/no-head")
    expect(other).toMatchObject({ ok: true, asked: ["HEAD /no-head", "GET /no-head"] })
  })

  test("that is dead says so", async () => {
    const dead = { status: 404, ok: false, error: "The server answered 404." }
    expect(await probe("/gone")).toMatchObject(dead)
  })

  test.each([401, 403, 405, 429, 503])(
    "whose server refuses programs with %d is not called dead",
    async (status) => {
      const { ok, error, ...found } = await probe(`/answers/${status}`)
      expect([ok, found.status]).toEqual([null, status])
      expect(error).toContain(`refused to answer (${status})`)
    },
  )

  test.each([400, 404, 410, 500, 502])("whose server answers %d is dead", async (status) => {
    expect(await probe(`/answers/${status}`)).toMatchObject({ status, ok: false })
  })

  test("is followed, but not for ever, and never to a private address", async () => {
    expect(await probe("/moved")).toMatchObject({ status: 200, ok: true })
    expect(await probe("/round")).toMatchObject({ status: null, ok: false })
    expect(asked.length).toBeLessThan(10)
    const inward = await probe("/inward")
    expect(inward).toMatchObject({ status: null, ok: null })
    expect(inward.error).toContain("not public")
    expect(await probe("/odd")).toMatchObject({ ok: false, error: "The URL cannot be used." })
  })

  test("that leads to an unsubscription is not followed there", async () => {
    expect(await probe("/to-unsubscribe")).toMatchObject({
      ok: null,
      asked: ["HEAD /to-unsubscribe"],
    })
  })

  test("that leads to another link of the mail, which may end a subscription, is not followed", async () => {
    asked.length = 0
    const found = await probeLinks([target(at("/moved")), target(at("/ok"), true)], HERE)
    expect(found.map(({ ok }) => ok)).toEqual([null, null])
    expect(asked).toEqual(["HEAD /moved"])
  })

  test("whose server is silent, or never stops, costs no more than its time", async () => {
    expect(await probe("/slow", { ...HERE, timeout_ms: 500 })).toMatchObject({
      ok: false,
      error: expect.stringContaining("time"),
    })
    expect(await probe("/endless")).toMatchObject({ status: 200, ok: true })
  })

  test("with a private or a local address is not asked at all without leave", async () => {
    const opened: unknown[] = []
    const inside = createServer((socket) => void opened.push(socket.destroy()))
    const { promise, resolve } = Promise.withResolvers<void>()
    inside.listen(0, "127.0.0.1", resolve)
    await promise
    const { port } = inside.address() as { port: number }
    const hosts = ["127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "2130706433"]
    const others = ["10.0.0.1", "192.168.1.1", "169.254.169.254", "[fe80::1]", "[fc00::1]"]
    const urls = [...hosts, ...others].map((host) => `http://${host}:${port}/`)
    const found = await probeLinks(
      urls.map((url) => target(url)),
      { allow_private: [], timeout_ms: 500 },
    )
    expect(found.map(({ ok, status }) => [ok, status])).toEqual(urls.map(() => [null, null]))
    expect(new Set(found.map(({ error }) => error)).size).toBe(1)
    expect(opened).toEqual([])
    inside.close()
  })
})

describe("the host of a link", () => {
  const link = [target("http://elsewhere.test/")]
  const none = async () => []
  const failing = () => Promise.reject(new DnsError("SERVFAIL", true))
  const silent = () => new Promise<string[]>(() => {})

  test("without an address is dead", async () => {
    const rules = { ...HERE, resolver: { a: none, aaaa: none } }
    expect(await probeLinks(link, rules)).toMatchObject([
      { ok: false, error: "The host has no address." },
    ])
  })

  test.each([
    ["fail", { a: failing, aaaa: failing }],
    ["fail for one kind of address", { a: none, aaaa: failing }],
    ["are silent", { a: silent, aaaa: silent }],
  ])("is not known to be dead where the name servers %s", async (_, resolver) => {
    const rules = { ...HERE, timeout_ms: 200, resolver }
    for (const targets of [link, [target(at("/to-nowhere"))]]) {
      const [found] = await probeLinks(targets, rules)
      expect(found).toMatchObject({ status: null, ok: null })
      expect(found?.error).toContain("name servers did not answer")
    }
  })

  test("is asked for once by all links of a mail", async () => {
    const names: string[] = []
    const a = async (name: string) => [names.push(name), "127.0.0.1"].slice(1) as string[]
    const urls = ["/ok", "/gone"].map((path) => `http://elsewhere.test:${server.port}${path}`)
    const targets = urls.map((url) => target(url))
    const found = await probeLinks(targets, { ...HERE, resolver: { a, aaaa: none } })
    expect(found.map(({ status }) => status)).toEqual([200, 404])
    expect(names).toEqual(["elsewhere.test"])
  })

  test("that is this server says so, but not to those that may not look inside", async () => {
    const unregister = listening("0.0.0.0", server.port ?? 0)
    const hosts = ["127.0.0.1", "localhost"].map((host) => `http://${host}:${server.port}/ok`)
    const errorsFor = async (allow_private: string[]) =>
      (
        await probeLinks(
          hosts.map((url) => target(url)),
          { allow_private },
        )
      ).map(({ ok, error }) => [ok, error?.includes("this server")])
    expect(await errorsFor(["127.0.0.1"])).toEqual([
      [null, true],
      [null, true],
    ])
    expect(await errorsFor([])).toEqual([
      [null, false],
      [null, false],
    ])
    unregister()
  })
})

test("a link that may end a subscription is never asked, and of the rest no more than 50 are", async () => {
  asked.length = 0
  const many = Array.from({ length: 60 }, (_, n) => target(at(`/many/${n}`)))
  const found = await probeLinks([target(at("/ok"), true), ...many], HERE)
  expect(found[0]).toMatchObject({ status: null, ok: null })
  expect(found.filter(({ ok }) => ok === null)).toHaveLength(11)
  expect(new Set(asked.map((one) => one.split(" ")[1])).size).toBe(50)
  expect(asked.some((one) => one.endsWith("/ok"))).toBe(false)
})

describe("the targets of a mail", () => {
  const urlsOf = (head: string, html: string | null, text: string | null = null) =>
    linkTargets(Buffer.from(`${head}\r\n\r\n`), { html, text })

  test("are its http links, each once and without the part behind #", () => {
    const html =
      '<a href="https://a.test/x#1">a</a><a href="https://a.test/x#2">b</a><a href="mailto:a@b.test">m</a>' +
      '<a href="javascript:alert(1)">j</a><a href="/relative">r</a><a href="HTTP://B.test/?a=1&amp;b=2">q</a>'
    expect(urlsOf("Subject: x", html)).toEqual([
      target("https://a.test/x"),
      target("http://b.test/?a=1&b=2"),
    ])
  })

  test("of a mail of text alone are those in the text", () => {
    const text = "Go to https://a.test/x.\nOr (https://b.test/y)\nUnsubscribe: https://c.test/z"
    expect(urlsOf("Subject: x", null, text)).toEqual([
      target("https://a.test/x"),
      target("https://b.test/y"),
      target("https://c.test/z", true),
    ])
  })

  test.each([
    '<a href="https://a.test/unsubscribe?u=1">x</a>',
    '<a href="https://a.test/l/%75nsubscribe">x</a>',
    '<a href="https://a.test/x">Unsubscribe here</a>',
    '<a href="https://a.test/x">Abmelden</a>',
    '<a href="https://a.test/opt-out">x</a>',
    '<a href="https://list-manage.test/x">x</a>',
    '<a href="https://a.test/u/token">x</a>',
    '<a href="https://a.test/p/token">x</a>',
    '<a href="https://a.test/x">ok</a><a href="https://a.test/x">unsubscribe</a>',
    '<a href="https://one.click/abc">x</a>',
  ])("that may end a subscription are marked: %s", (html) => {
    const head = "List-Unsubscribe: <mailto:u@a.test>, <https://one.click/abc>"
    expect(urlsOf(head, html).map(({ is_unsubscribe }) => is_unsubscribe)).toEqual([true])
  })
})
