import { describe, expect, test } from "bun:test"
import { simpleParser } from "mailparser"
import { deliverAll } from "../harness/delivery"
import { sharedService } from "../harness/shared-service"
import { idsOf, testSubmission } from "../harness/submission"
import { FIREFOX } from "./letters"

const service = await sharedService()
const { login, submit } = testSubmission(service)

const BOTH = "X-Svc-Track-Opens: true\nX-Svc-Track-Clicks: TRUE\n"
const HTML = '<body><a href="https://shop.test/a?x=1&amp;y=2">Grüße</a></body>'

let number = 0

/** Hands a mail over and delivers it: the bytes that left, and how the record shows it. */
async function send(fields: string, body: string, settings: object = {}) {
  const project = await service.project()
  await project.call("PATCH", "/v1/settings", { body: settings })
  const head = `From: bell@example.test\nTo: ann@example.test\nSubject: Ding\nMessage-ID: <${++number}@client.test>\nMIME-Version: 1.0\n`
  const raw = `${head}${fields}\n${body}`
  const [id = ""] = idsOf(await submit(await login(project.key), { raw, to: "ann@example.test" }))
  const handed = await deliverAll(service)
  const left = Buffer.from(handed.find(({ message_id }) => message_id === id)?.raw ?? "")
  const email = (await project.get(`/v1/emails/${id}`)).body.data
  const raw_again = (await project.get(`/v1/emails/${id}/raw`)).bytes
  const { html } = await simpleParser(left)
  const links = [...(html || "").matchAll(/href="http:\/\/belfry\.test(\/t\/c\/[^"]+)"/g)]
  return { left, email, raw_again, html: html || "", links: links.map(([, path = ""]) => path) }
}

const part = (encoding: string, content: string, type = "text/html; charset=utf-8") =>
  `Content-Type: ${type}\nContent-Transfer-Encoding: ${encoding}\n\n${content}\n`

test("bytes stay what they are, unless the mail or the project asks for tracking", async () => {
  const plain = await send(part("8bit", HTML), "")
  expect([plain.email.track_opens, plain.html.trim()]).toEqual([false, HTML])
  const asked = await send(BOTH + part("8bit", HTML), "")
  expect(asked.email).toMatchObject({ track_opens: true, track_clicks: true })
  expect([asked.links.length, asked.html.includes("/t/o/")]).toEqual([1, true])
  const set = await send(part("8bit", HTML), "", { track_clicks: true })
  expect([set.links.length, set.html.includes("/t/o/")]).toEqual([1, false])
  const off = await send(`X-Svc-Track-Clicks: false\n${part("8bit", HTML)}`, "", {
    track_clicks: true,
  })
  expect(off.links).toEqual([])
})

test("a link leads to where it led", async () => {
  const { links } = await send(BOTH + part("8bit", HTML), "")
  const { headers } = await service.anybody.get(links[0] ?? "", { "user-agent": FIREFOX })
  expect(headers.get("location")).toBe("https://shop.test/a?x=1&y=2")
})

describe("html is found", () => {
  const base64 = Buffer.from(HTML).toString("base64")
  const quoted = HTML.replaceAll("=", "=3D").replaceAll("ü", "=C3=BC").replaceAll("ß", "=C3=9F")
  const latin = Buffer.from(HTML, "latin1").toString("base64")
  const long = `${HTML}${"<p>x</p>".repeat(100)}`

  test.each([
    ["in 8 bits", part("8bit", HTML)],
    ["in base64", part("base64", base64)],
    ["quoted-printable", part("quoted-printable", quoted)],
    ["in an older charset", part("base64", latin, "text/html; charset=iso-8859-1")],
    ["in lines that become too long", part("8bit", long)],
  ])("%s", async (_, body) => {
    const { html, links, raw_again, left } = await send(BOTH + body, "")
    expect(html).toContain("Grüße</a>")
    expect(links).toHaveLength(1)
    expect(html.match(/\/t\/o\//g)).toHaveLength(1)
    expect(Buffer.from(raw_again).equals(left)).toBe(true)
    const longest = Math.max(
      ...left
        .toString("latin1")
        .split("\r\n")
        .map(({ length }) => length),
    )
    expect(longest).toBeLessThanOrEqual(998)
  })

  test("inside of a mail with a text and a file, which stay byte for byte", async () => {
    const file = Buffer.from('<a href="https://file.test">x</a>').toString("base64")
    const text = part("7bit", "See https://shop.test/a", "text/plain")
    const inner = `Content-Type: multipart/alternative; boundary=in\n\n--in\n${text}--in\n${part("8bit", HTML)}--in--\n`
    const attached = `Content-Type: text/html; name=a.html\nContent-Disposition: attachment; filename=a.html\nContent-Transfer-Encoding: base64\n\n${file}\n`
    const body = `preamble\n--out\n${inner}--out\n${attached}--out--\n`
    const { left, links } = await send(`${BOTH}Content-Type: multipart/mixed; boundary=out\n`, body)
    expect(links).toHaveLength(1)
    for (const same of [text, attached]) {
      expect(left.toString("latin1")).toContain(same.replaceAll("\n", "\r\n"))
    }
  })
})

test("a large mail is kept without a second copy of its files, and is read back byte for byte", async () => {
  const file = Buffer.from(crypto.getRandomValues(new Uint8Array(60_000))).toString("base64")
  const lines = file.replaceAll(/.{76}/g, "$&\n")
  const attached = `Content-Type: application/octet-stream; name=x\nContent-Disposition: attachment\nContent-Transfer-Encoding: base64\n\n${lines}\n`
  const body = `--b\n${part("8bit", HTML)}--b\n${attached}--b--\n`
  const sent = await send(`${BOTH}Content-Type: multipart/mixed; boundary=b\n`, body)
  expect(sent.links).toHaveLength(1)
  expect(sent.left.length).toBeGreaterThan(65_536)
  expect(Buffer.from(sent.raw_again).equals(sent.left)).toBe(true)
})

test("what is signed or encrypted stays as it is", async () => {
  const signed = `--s\n${part("7bit", HTML.replaceAll("ü", "u").replaceAll("ß", "s"))}--s\nContent-Type: application/pgp-signature\n\nxyz\n--s--\n`
  const type = 'Content-Type: multipart/signed; protocol="application/pgp-signature"; boundary=s\n'
  const { left, email } = await send(BOTH + type, signed)
  expect(email).toMatchObject({ track_opens: false, track_clicks: false })
  expect(left.toString("latin1")).toContain(signed.replaceAll("\n", "\r\n"))
})

test("a link that the mail names in List-Unsubscribe stays", async () => {
  const own = '<a href="https://shop.test/bye">Bye</a>'
  const field = "List-Unsubscribe: <mailto:x@shop.test>,\n <https://shop.test/bye>\n"
  const { html, links } = await send(BOTH + field + part("7bit", own), "")
  expect([links, html.includes(own)]).toEqual([[], true])
})

test("a word that is neither true nor false is refused", async () => {
  const sent = send(`X-Svc-Track-Opens: yes\n${part("7bit", "x")}`, "")
  expect(sent).rejects.toThrow("X-Svc-Track-Opens")
})
