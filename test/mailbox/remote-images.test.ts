import { afterAll, beforeEach, describe, expect, test } from "bun:test"
import { newId } from "../../src/core/ids"
import { loadedText, loadImages, withLoadPermit } from "../../src/mailbox/remote-images"
import { remoteImages } from "../../src/mailbox/view-task"
import { trackedHtml } from "../../src/tracking/tracked-html"
import { client } from "../harness/client"
import { sharedService } from "../harness/shared-service"
import { htmlMail, putMail } from "./received"

const PNG = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
)
const MB = 1024 ** 2
const SVG = '<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'

const asked: { path: string; headers: Headers }[] = []
let open = 0
let most_open = 0

/** The path says what comes: `/png`, `/mb/4`, `/to/URL`, `/svg`, `/page`, `/never`, `/drip`, `/status/404`. */
const site = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  idleTimeout: 0,
  async fetch({ url, headers }) {
    const { pathname, searchParams } = new URL(url)
    asked.push({ path: pathname, headers })
    const [, kind = "", value = ""] = pathname.split("/")
    if (kind === "to")
      return new Response(null, {
        status: 302,
        headers: { location: searchParams.get("url") ?? "" },
      })
    if (kind === "svg") return new Response(SVG, { headers: { "content-type": "image/svg+xml" } })
    if (kind === "page") return new Response("<p>", { headers: { "content-type": "image/png" } })
    if (kind === "never") return new Promise<Response>(() => {})
    if (kind === "drip") return new Response(endless())
    if (kind === "status") return new Response(PNG, { status: Number(value) })
    if (kind === "mb") return new Response(Buffer.concat([PNG, Buffer.alloc(Number(value) * MB)]))
    most_open = Math.max(most_open, ++open)
    await Bun.sleep(5)
    open--
    return new Response(PNG, { headers: { "content-type": "text/plain", "set-cookie": "a=b" } })
  },
})
afterAll(() => site.stop(true))
beforeEach(() => {
  asked.length = 0
})

/** An image that goes on for ever. */
const endless = () => {
  let begun = false
  return new ReadableStream({
    async pull(stream) {
      if (begun) await Bun.sleep(5)
      stream.enqueue(begun ? new Uint8Array(10) : PNG)
      begun = true
    },
  })
}

const at = (path: string) => `http://127.0.0.1:${site.port}${path}`
const moved = (url: string) => at(`/to/x?url=${encodeURIComponent(url)}`)
const HERE = { allow_private: ["127.0.0.1"] }

const loaded = async (paths: string[], rules: Parameters<typeof loadImages>[1] = HERE) =>
  [...(await loadImages(paths, rules)).keys()].toSorted()

describe("remote images", () => {
  test("are the first 20, a few at a time, without a cookie or a referrer", async () => {
    const urls = Array.from({ length: 25 }, (_, place) => at(`/png/${place + 10}`))
    expect(await loaded(urls)).toEqual(urls.slice(0, 20))
    expect(asked).toHaveLength(20)
    expect(most_open).toBeLessThanOrEqual(4)
    for (const { headers } of asked)
      expect([headers.get("cookie"), headers.get("referer")]).toEqual([null, null])
  })

  test("have 10 MB together, and a larger one is left out", async () => {
    const small = [at("/png/1"), at("/png/2")]
    expect(await loaded([at("/mb/20"), ...small])).toEqual(small)
    expect(await loaded(["1", "2", "3"].map((one) => at(`/mb/4?${one}`)))).toHaveLength(2)
  })

  test.each([
    ["a drawing that may hold a script", at("/svg")],
    ["a page that is called an image", at("/page")],
    ["an image behind a refusal", at("/status/404")],
    ["a private address", "http://10.0.0.1/a.png"],
    ["the address of a cloud's secrets", "http://169.254.169.254/latest/meta-data"],
    ["a redirect to the cloud's secrets", moved("http://169.254.169.254/latest/meta-data")],
    ["a redirect to another scheme", moved("file:///etc/passwd")],
    ["a redirect to nowhere", moved("")],
    ["a redirect in a circle", at("/to/x?url=%2Fto%2Fx")],
    ["an address with a password", at("/png").replace("//", "//ann:secret@")],
    ["a redirect to an address with a password", moved(at("/png").replace("//", "//a:b@"))],
    ["another scheme", "ftp://127.0.0.1/a.png"],
    ["no address", "http://"],
    ["a port that nobody listens at", "http://127.0.0.1:1/a.png"],
  ])("do not come from %s", async (_, url) => {
    expect(await loaded([url])).toEqual([])
  })

  test("do not come from this machine where webhooks may not go there", async () => {
    expect(await loaded([at("/png")], { allow_private: [] })).toEqual([])
    expect(asked).toEqual([])
  })

  test("do not wait for a server that never answers, or never ends", async () => {
    const rules = { ...HERE, timeout_ms: 100 }
    expect(await loaded([at("/never"), at("/drip"), at("/png")], rules)).toEqual([at("/png")])
  })

  test("come by a redirect to another address, under the address of the mail", async () => {
    const url = moved(at("/png/end"))
    expect(await loaded([url, moved("/png/beside")])).toEqual(
      [url, moved("/png/beside")].toSorted(),
    )
  })

  test("are loaded for one mail of a project at a time, and a third one is told to wait", async () => {
    const first = Promise.withResolvers<void>()
    const one = withLoadPermit("p", () => first.promise)
    let has_begun = false
    const two = withLoadPermit("p", async () => {
      has_begun = true
    })
    expect(withLoadPermit("p", async () => {})).rejects.toMatchObject({
      code: "service_unavailable",
    })
    await withLoadPermit("q", async () => expect(has_begun).toBe(false))
    first.resolve()
    await Promise.all([one, two])
    expect(has_begun).toBe(true)
  })

  test("are told with their number, and with the limits where some are missing", () => {
    expect(loadedText(1, 1)).toBe("1 remote image is loaded.")
    expect(loadedText(3, 3)).toBe("3 remote images are loaded.")
    expect(loadedText(20, 500)).toStartWith("20 of 500 remote images are loaded. The server loads")
    expect(loadedText(0, 0)).toContain("no remote images")
  })
})

describe("the remote images of a mail", () => {
  const key = new Uint8Array(32)
  const found = (html: string) =>
    remoteImages({ raw: Buffer.from(htmlMail(html).replaceAll("\n", "\r\n")), key })

  test("stand in src, background and url(), each address once", () => {
    const html = `<img src="http://a.test/1?x=1&amp;y=2"><img src=" HTTP://A.test/1?x=1&y=2#top ">
<td background=//b.test/2><p style="background:url('https://c.test/3')"><style>p{background:url(https://d.test/4)}</style>`
    expect(found(html)).toEqual([
      "http://a.test/1?x=1&y=2",
      "https://b.test/2",
      "https://c.test/3",
      "https://d.test/4",
    ])
  })

  test.each([
    ["a list of sizes", '<img srcset="https://a.test/1 2x"><source srcset="https://a.test/1">'],
    ["a font", "<style>@font-face{src:url(https://a.test/1)}@font-face @font-face{x</style>"],
    [
      "a style sheet",
      '<link rel=stylesheet href="https://a.test/1"><style>@import url(https://a.test/1)',
    ],
    [
      "a film, a drawing or a frame",
      '<video poster="https://a.test/1"></video><svg><image href="https://a.test/1"/></svg><iframe src="https://a.test/1">',
    ],
    [
      "a comment or a script",
      '<!--<img src="https://a.test/1">--><script>"<img src=https://a.test/1>"</script>',
    ],
    [
      "another scheme or the mail itself",
      '<img src="ftp://a.test/1"><img src="cid:a"><img src="/v1/emails"><img src="data:text/html,x"><img src="https://">',
    ],
    ["a very long address", `<img src="https://a.test/${"a".repeat(5000)}">`],
  ])("are not those of %s", (_, html) => expect(found(html)).toEqual([]))

  test("are not those by which this server counts openings", () => {
    const tracking = { opens: true, clicks: true, untracked: { urls: [], prefixes: [] } }
    const of = { message_id: newId(), key, base_url: "https://t.example.test", ...tracking }
    const html = trackedHtml('<a href="https://a.test"><img src="https://a.test/1"></a>', of)
    expect(html).toContain("https://t.example.test/t/o/")
    expect(found(html)).toEqual(["https://a.test/1"])
  })

  test("are at most 1,000, however many the mail names", () => {
    const html = Array.from({ length: 3000 }, (_, place) => `<img src=https://a.test/${place}>`)
    expect(found(html.join(""))).toHaveLength(1000)
  })
})

describe("the page of a mail", async () => {
  const service = await sharedService()
  const anybody = client(service.app, undefined)

  async function pagesOf(html: string) {
    const project = await service.project()
    const id = await putMail(service, project, { raw: htmlMail(html) })
    const { html_url } = (await project.get(`/v1/mailbox/${id}`)).body.data
    const plain = await anybody.get(html_url)
    return { plain, before: asked.length, whole: await anybody.get(`${html_url}?images=remote`) }
  }

  test("asks for no image before somebody wants them, and has them as data then", async () => {
    const html = `<body bgcolor="#eee"><img src="${at("/png/1")}" srcset="${at("/png/2")} 2x" onerror="alert(1)"><table background="${at("/png/1")}"></table><style>p{background:url(${at("/png/3")})}</style><img src="${at("/svg")}">`
    const { plain, before, whole } = await pagesOf(html)
    expect(before).toBe(0)
    expect(plain.text).not.toContain("data:image")
    expect(whole.text.match(/data:image\/png;base64,iVBOR/g)).toHaveLength(3)
    expect(asked.map(({ path }) => path).toSorted()).toEqual(["/png/1", "/png/3", "/svg"])
    expect(whole.text).toContain("2 of 3 remote images are loaded.")
    expect(whole.text).not.toMatch(/127\.0\.0\.1|onerror|<svg/)
    for (const name of ["content-security-policy", "cache-control", "referrer-policy"])
      expect(whole.headers.get(name)).toBe(plain.headers.get(name))
  })

  test("has 20 of 500 images, and says so above what the mail could hide", async () => {
    const images = Array.from({ length: 500 }, (_, place) => `<img src="${at(`/png/${place}`)}">`)
    const { whole } = await pagesOf(`<style>p,*{display:none!important}</style>${images.join("")}`)
    expect(whole.text.match(/data:image/g)).toHaveLength(20)
    expect(whole.text).toContain("20 of 500 remote images are loaded.")
    expect(whole.text).toContain("display:block!important")
  })

  test("does not grow by an image that is shown very often", async () => {
    const { whole } = await pagesOf(`<img src="${at("/mb/2")}">`.repeat(400))
    expect(whole.text.match(/data:image/g)).toHaveLength(4)
  })
})
