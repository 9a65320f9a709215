import { afterAll, describe, expect, test } from "bun:test"
import { refusal } from "../harness/client"
import { mail } from "../harness/mail"
import type { TestProject } from "../harness/service"
import { sharedService } from "../harness/shared-service"
import { htmlMail, putMail, sendAndPut } from "./received"

const service = await sharedService()

const asked: string[] = []
const server = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  fetch(request) {
    const { pathname } = new URL(request.url)
    asked.push(pathname)
    if (pathname === "/to-leave")
      return new Response(null, { status: 302, headers: { location: "/leave" } })
    return new Response(null, { status: pathname === "/dead" ? 404 : 200 })
  },
})
afterAll(() => server.stop(true))

const here = (path: string) => `http://127.0.0.1:${server.port}${path}`

async function check(project: TestProject, raw: string, body: object = {}) {
  const id = await putMail(service, project, { raw })
  return (await project.post(`/v1/mailbox/${id}/check`, body)).body.data
}

describe("a check", () => {
  test("names what mail programs do not show, the worst first", async () => {
    const project = await service.project()
    const html =
      "<style>.a{gap:1rem} a:hover{color:red}</style><video></video><p style='display:flex'>x</p><p style='display:flex'>"
    const { html: features, links } = await check(project, htmlMail(html))
    const byName = new Map<
      string,
      { count: number; programs: { name: string; support: string }[] }
    >(features.map((one: { feature: string }) => [one.feature, one]))
    expect(features[0].feature).toBe("<video> element")
    expect(byName.get("display:flex")?.count).toBe(2)
    expect(byName.get("display:flex")?.programs).toContainEqual({
      name: "Outlook (Windows)",
      support: "no",
    })
    for (const name of ["gap, column-gap, row-gap", ":hover", "rem unit"]) {
      expect(byName.has(name)).toBe(true)
    }
    expect(links).toBeNull()
    expect(asked).toEqual([])
  })

  test("tells of size, and of what filters count", async () => {
    const project = await service.project()
    const raw = htmlMail(`<p>${"x".repeat(103 * 1024)} {{name}}</p>`)
    const id = await putMail(service, project, { raw, subject: "BUY THIS NOW" })
    const { data } = (await project.post(`/v1/mailbox/${id}/check`, {})).body
    const { size } = (await project.get(`/v1/mailbox?search=BUY`)).body.data[0]
    expect(data.size).toMatchObject({ bytes: size, clipped: true })
    expect(data.size.html_bytes).toBeGreaterThan(102 * 1024)
    const rules = data.content.map(({ rule }: { rule: string }) => rule)
    expect(rules).toContain("capitals")
    expect(rules).toContain("placeholder")
    expect(rules).not.toContain("unsupported")
  })

  test("of a mail without html, or of one that is broken, says little and breaks nothing", async () => {
    const project = await service.project()
    const plain = await check(project, "Subject: x\n\ntext\n")
    expect(plain).toMatchObject({ html: [], links: null, size: { html_bytes: 0, clipped: false } })
    for (const html of ["<", "<style>", "<a href=", "<p style='", "<!--", "&#x", "\u0000"]) {
      const broken = await check(project, htmlMail(html.repeat(2000)))
      expect(broken.size.bytes).toBeGreaterThan(0)
    }
  })

  test("of a mail that is made to hurt ends within its time", async () => {
    const project = await service.project()
    const deep = "<div style='a:b'>".repeat(60_000)
    const css = `<style>${"a{b:url(".repeat(60_000)}</style>`
    for (const html of [deep, css, "<a href=http://x.test/".repeat(50_000)]) {
      expect((await check(project, htmlMail(html))).html).toBeArray()
    }
  })

  test("asks for links only when it is told to, and finds the dead one", async () => {
    const project = await service.project()
    const html = `<a href="${here("/dead")}">a</a><a href="${here("/ok")}">b</a><a href="${here("/unsubscribe")}">c</a>`
    asked.length = 0
    const { links } = await check(project, htmlMail(html), { links: true })
    expect(links).toEqual([
      { url: here("/dead"), status: 404, ok: false, error: "The server answered 404." },
      { url: here("/ok"), status: 200, ok: true, error: null },
      { url: here("/unsubscribe"), status: null, ok: null, error: expect.any(String) },
    ])
    expect(asked).not.toContain("/unsubscribe")
  })

  test("asks for no link whose surroundings tell that it ends a subscription", async () => {
    const project = await service.project()
    const links = [
      `<p>To unsubscribe from this list, <a href="${here("/a")}">click here</a></p>`,
      `<p><a href="${here("/b")}"><img alt="Unsubscribe"></a></p>`,
      `<p><a href="${here("/c")}" title="Unsubscribe">No more</a></p>`,
      `<p>Don’t want these mails? <a href="${here("/d")}">Click here</a></p>`,
      `<p><a href="${here("/e")}">登録解除</a> <a href="${here("/f")}">Peruuta tilaus</a></p>`,
    ]
    const raw = `Subject: x
Content-Type: multipart/alternative; boundary="b"

--b
Content-Type: text/plain; charset=utf-8

Remove me from this list: ${here("/g")}
--b
Content-Type: text/html; charset=utf-8

<p>Hello.</p><p><a href="${here("/g")}">Look</a></p><hr>${"<p>Some words.</p>".repeat(20)}${links.join("")}
--b--
`
    asked.length = 0
    const { links: found } = await check(project, raw, { links: true })
    expect(found.map(({ ok }: { ok: boolean | null }) => ok)).toEqual(Array(7).fill(null))
    expect(asked).toEqual([])
  })

  test("asks where a tracked link leads, and makes no click", async () => {
    const project = await service.project()
    await project.call("PATCH", "/v1/settings", { body: { track_clicks: true } })
    const html = `<p><a href="${here("/shop")}">Shop</a></p>`
    const { id } = await sendAndPut(service, project, mail({ html }))
    const raw = (await project.get(`/v1/mailbox/${id}/raw`)).text
    expect(raw).toContain("/t/c/")
    const { links } = (await project.post(`/v1/mailbox/${id}/check`, { links: true })).body.data
    expect(links).toMatchObject([{ url: here("/shop"), status: 200, ok: true }])
  })

  test("finds no fault in what the server's own tracking put into the mail", async () => {
    const project = await service.project()
    await project.call("PATCH", "/v1/settings", { body: { track_clicks: true, track_opens: true } })
    const html = `<html lang="en"><p>${"Some words for the reader. ".repeat(5)}<a href="https://shop.test/a?x=1&amp;y=2">Shop</a> <a href="http://shop.test/">Old</a></p></html>`
    const { id } = await sendAndPut(service, project, mail({ html }))
    const raw = (await project.get(`/v1/mailbox/${id}/raw`)).text
    expect([raw.includes("/t/c/"), raw.includes("/t/o/")]).toEqual([true, true])
    const { content, html: features } = (await project.post(`/v1/mailbox/${id}/check`, {})).body
      .data as { content: { rule: string; detail: string }[]; html: { feature: string }[] }
    const detail = '"http://shop.test/" is without TLS. Use https.'
    expect(content).toEqual([{ rule: "without_https", detail }])
    expect(features.map(({ feature }) => feature)).toEqual(["lang attribute"])
  })

  test("asks for no address of List-Unsubscribe, wherever a link leads there from", async () => {
    const project = await service.project()
    await project.call("PATCH", "/v1/settings", { body: { track_clicks: true } })
    const headers = { "List-Unsubscribe": `<${here("/leave")}>` }
    const html = `<p><a href="${here("/leave#now")}">A</a> <a href="${here("/to-leave")}">B</a></p>`
    const { id } = await sendAndPut(service, project, mail({ html, headers }))
    expect((await project.get(`/v1/mailbox/${id}/raw`)).text).toContain("/t/c/")
    asked.length = 0
    const { links } = (await project.post(`/v1/mailbox/${id}/check`, { links: true })).body.data
    expect(links.map(({ ok }: { ok: boolean | null }) => ok)).toEqual([null, null])
    expect(asked).toEqual(["/to-leave"])
  })

  test("is of the own project's mail alone", async () => {
    const [one, two] = [await service.project(), await service.project()]
    const id = await putMail(service, one, { raw: "Subject: x\n\nx\n" })
    expect(refusal(await two.post(`/v1/mailbox/${id}/check`, {}))).toEqual([404, "not_found"])
    expect((await one.post(`/v1/mailbox/${id}/check`, { links: "yes" })).status).toBe(422)
  })
})
