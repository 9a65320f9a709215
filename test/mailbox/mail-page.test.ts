import { describe, expect, test } from "bun:test"
import { client, refusal } from "../harness/client"
import { movableClock } from "../harness/clock"
import type { TestProject } from "../harness/service"
import { sharedService } from "../harness/shared-service"
import { htmlMail, inlinePart, putMail } from "./received"

const service = await sharedService()
const anybody = client(service.app, undefined)
const clock = movableClock()

async function urlOf(project: TestProject, raw: string): Promise<string | null> {
  const id = await putMail(service, project, { raw })
  return (await project.get(`/v1/mailbox/${id}`)).body.data.html_url
}

async function pageOf(html: string, ...files: string[]): Promise<string> {
  const project = await service.project()
  const url = await urlOf(project, htmlMail(html, ...files))
  return (await anybody.get(url ?? "")).text
}

describe("the page of a mail's html", () => {
  test("is a document of its own, which runs and loads nothing", async () => {
    const project = await service.project()
    const url = (await urlOf(project, htmlMail("<p>Grüße</p>"))) ?? ""
    expect(url).toMatch(/^\/mailbox\/html\/[\w.-]+$/)
    const answer = await anybody.get(url)
    expect([answer.status, answer.headers.get("content-type")]).toEqual([
      200,
      "text/html;charset=utf-8",
    ])
    const policy = answer.headers.get("content-security-policy")?.split("; ")
    expect(policy).toEqual([
      "sandbox allow-popups allow-popups-to-escape-sandbox",
      "default-src 'none'",
      "style-src 'unsafe-inline'",
      "img-src data:",
      "base-uri 'none'",
      "form-action 'none'",
      "frame-ancestors 'self'",
    ])
    expect(answer.headers.get("x-content-type-options")).toBe("nosniff")
    expect(answer.headers.get("referrer-policy")).toBe("no-referrer")
    expect(answer.headers.get("cache-control")).toBe("private, no-store")
    expect(answer.text).toContain("<p>Grüße</p>")
  })

  test("is absent where the mail has text alone", async () => {
    const project = await service.project()
    expect(await urlOf(project, "Subject: a\n\ntext\n")).toBeNull()
  })

  test("shows inline images, by what their bytes are", async () => {
    const svg = btoa("<svg xmlns='http://www.w3.org/2000/svg'><script>1</script></svg>")
    const page = await pageOf(
      '<img src="cid:one" alt=a><img src="CID:two%40b"><img src="cid:svg"><img src="cid:none">' +
        '<td background="cid:one" style="background:url(cid:one)">',
      inlinePart("one"),
      inlinePart("two@b", "text/html"),
      inlinePart("svg", "image/svg+xml", svg),
    )
    expect(page.match(/data:image\/png;base64/g)).toHaveLength(4)
    expect(page).not.toContain("svg")
    expect(page).not.toContain("cid:")
  })

  test("is made harmless, so that nothing runs in a copy of it", async () => {
    const page = await pageOf(
      "<script>alert(1)</script><p onclick='alert(1)' style='color:red'>kept</p>" +
        "<meta http-equiv=refresh content='0;url=https://evil.test'><base href='https://evil.test'>" +
        "<form action='https://evil.test'><input name=q></form><iframe src='https://evil.test'></iframe>" +
        "<img src='https://evil.test/pixel.gif' srcset='https://evil.test/2x 2x'>" +
        "<link rel=stylesheet href='https://evil.test/a.css'><object data='https://evil.test'></object>" +
        "<style>@import 'https://evil.test/b.css'; p{background:url(https://evil.test/c.png)}</style>" +
        "<math><mtext><img src=x onerror=alert(1)></mtext></math><svg onload=alert(1)><a href='javascript:x'>l</a></svg>",
    )
    expect(page).toContain('<p style="color:red">kept</p>')
    expect(page).not.toMatch(/evil\.test|<script|onclick|onerror|onload|javascript:|<form|<input/i)
    expect(page).not.toMatch(/<iframe|<object|<link|<base|<svg|<math|http-equiv="?refresh/i)
    expect(page).toContain("default-src 'none'")
  })

  test("keeps its style sheet in one piece, whatever is left out of it", async () => {
    const page = await pageOf(
      "<style><<@import x;/style><<link rel=preconnect href=https://evil.test><<script>alert(1)<</script>" +
        "<<<@import y;/sty@import z;le><<meta http-equiv=refresh content=0></style><p>behind</p>" +
        "<style>@media (width<600px){p{color:red}}</style>",
    )
    expect(page.match(/<\/style/gi)).toHaveLength(3)
    expect(page).not.toMatch(/<script|<link|<meta http-equiv=refresh/i)
    expect(page).toContain("(width<600px)")
  })

  test("shows its colours for dark screens where they are asked for", async () => {
    const project = await service.project()
    const css = "@media (prefers-color-scheme: dark){p{color:white}}"
    const url = (await urlOf(project, htmlMail(`<style>${css}</style><p>x</p>`))) ?? ""
    const light = (await anybody.get(url)).text
    const dark = (await anybody.get(`${url}?scheme=dark`)).text
    expect(light).toContain("@media (max-width: 0px){p{color:white}}")
    expect(dark).toContain("@media (min-width: 0px){p{color:white}}")
    expect(dark).toContain("color-scheme:dark")
    expect((await anybody.get(`${url}?scheme=purple`)).status).toBe(422)
  })

  test("is behind an address that nobody makes up, and that ends after ten minutes", async () => {
    const project = await service.project()
    const url = (await urlOf(project, htmlMail("<p>x</p>"))) ?? ""
    const changed = url.slice(0, -3) + (url.endsWith("AAA") ? "BBB" : "AAA")
    for (const other of [changed, "/mailbox/html/x", `/mailbox/html/${"a".repeat(5000)}`]) {
      expect((await anybody.get(other)).status).toBe(404)
    }
    clock.freeze()
    clock.advance({ seconds: 598 })
    expect((await anybody.get(url)).status).toBe(200)
    clock.advance({ seconds: 3 })
    expect((await anybody.get(url)).status).toBe(404)
  })

  test("goes with its mail", async () => {
    const project = await service.project()
    const id = await putMail(service, project, { raw: htmlMail("<p>x</p>") })
    const { html_url } = (await project.get(`/v1/mailbox/${id}`)).body.data
    await project.call("DELETE", `/v1/mailbox/${id}`)
    const answer = await anybody.get(html_url)
    expect(answer.status).toBe(404)
    expect(refusal(await project.get(`/v1/mailbox/${id}`))).toEqual([404, "not_found"])
  })
})
