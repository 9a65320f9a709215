import { afterAll, describe, expect, test } from "bun:test"
import { createTransport, type SendMailOptions } from "nodemailer"
import PostalMime from "postal-mime"
import { deliverAll } from "../harness/delivery"
import { sharedService } from "../harness/shared-service"
import { plainLogin, SmtpDialogue } from "../harness/smtp-dialogue"
import { openSubmission } from "../harness/submission"

const service = await sharedService()
const server = await openSubmission(service)
afterAll(() => server[Symbol.asyncDispose]())

const idIn = (reply: string) => /queued as ([0-9a-f-]{36})$/.exec(reply)?.[1] ?? reply

/** A client of nodemailer; it closes with the scope. */
function mailer(key: string, implicit = false) {
  const transport = createTransport({
    host: "127.0.0.1",
    port: implicit ? server.implicit_port : server.port,
    secure: implicit,
    requireTLS: !implicit,
    auth: { user: "svc", pass: key },
    tls: { rejectUnauthorized: false },
  })
  return {
    send: async (mail: SendMailOptions) => (await transport.sendMail(mail)).response,
    [Symbol.dispose]: () => transport.close(),
  }
}

describe.each([
  ["STARTTLS", false],
  ["implicit TLS", true],
])("nodemailer by %s", (_, implicit) => {
  test("sends text, html, an inline image and a file, and all of it arrives", async () => {
    const project = await service.project({ plan: "starter" })
    using client = mailer(project.key, implicit)
    const file = Buffer.from("%PDF ".repeat(2_000))
    const image = Buffer.from("PNG ".repeat(30))
    const reply = await client.send({
      from: "Glocke <bell@example.test>",
      to: "Ann Bell <ann@example.test>",
      cc: "ben@example.test",
      bcc: "eve@example.test",
      subject: "Grüße ✓",
      text: "Läuten",
      html: '<p>Läuten</p><img src="cid:logo@x">',
      headers: { "X-Kind": "bell", "X-Svc-Tag": "bell" },
      attachments: [
        { filename: "a b.pdf", content: file },
        { filename: "logo.png", content: image, cid: "logo@x" },
      ],
    })
    expect(reply).toMatch(/^250 2\.0\.0 Ok: queued as [0-9a-f-]{36}( [0-9a-f-]{36}){2}$/)
    const handed = await deliverAll(service)
    expect(handed.map(({ to }) => to[0]).sort()).toEqual([
      "ann@example.test",
      "ben@example.test",
      "eve@example.test",
    ])
    const seen = await PostalMime.parse(handed[0]?.raw ?? "")
    expect(seen).toMatchObject({
      subject: "Grüße ✓",
      text: "Läuten\n",
      from: { name: "Glocke", address: "bell@example.test" },
    })
    expect(seen.bcc).toBeUndefined()
    const own = seen.headers.flatMap(({ key }) => (key.startsWith("x-") ? [key] : []))
    expect(own.sort()).toEqual(["x-kind", "x-svc-email-id"])
    expect(seen.headers).toContainEqual(expect.objectContaining({ key: "x-kind", value: "bell" }))
    const contents = seen.attachments.map(({ content }) => Buffer.from(content as ArrayBuffer))
    expect(contents.some((content) => content.equals(file))).toBe(true)
    expect(contents.some((content) => content.equals(image))).toBe(true)

    const [id] = / ([0-9a-f-]{36})/.exec(reply)?.slice(1) ?? []
    const email = (await project.get(`/v1/emails/${id}`)).body.data
    expect(email).toMatchObject({ status: "delivered", text: "Läuten", tags: ["bell"] })
    expect(email.html).toBe('<p>Läuten</p><img src="cid:logo@x">')
    for (const { id: attachment_id, size } of email.attachments) {
      const { bytes } = await project.get(`/v1/emails/${id}/attachments/${attachment_id}`)
      expect(bytes.length).toBe(size)
    }
  })
})

/** A client behind STARTTLS. */
async function client() {
  const it = await SmtpDialogue.open(server.port)
  await it.say("EHLO me.test")
  await it.starttls()
  await it.say("EHLO me.test")
  return it
}

const bare = (reply: string) => reply.replace(/ \(req_[0-9a-f]{32}\)$/, " (req)")

describe("a raw dialogue", () => {
  test("from the greeting to the 250, with two mails on one connection", async () => {
    const { key, get } = await service.project()
    using it = await SmtpDialogue.open(server.port)
    expect(it.said).toMatch(/^220 mx\.belfry\.test ESMTP/)
    it.write("EHLO me.test\r\n")
    const plain = (await it.reply()).lines
    expect(await it.say("AUTH PLAIN AHN2YwBr")).toStartWith("538 5.7.11 ")
    expect(plain).toContain("SIZE 15728640")
    expect(plain.some((line) => line.startsWith("AUTH"))).toBe(false)
    await it.starttls()
    it.write("EHLO me.test\r\n")
    expect((await it.reply()).lines).toContain("AUTH PLAIN LOGIN")
    expect(await it.say("MAIL FROM:<a@b.test>")).toStartWith("530 5.7.0 ")
    expect(await it.say(plainLogin("anything", key))).toStartWith("235 ")
    const ids: string[] = []
    for (const number of [1, 2]) {
      expect(await it.say("MAIL FROM:<root@localhost> BODY=8BITMIME")).toStartWith("250 ")
      expect(await it.say("RCPT TO:<ann@example.test>")).toStartWith("250 ")
      expect(await it.say("DATA")).toStartWith("354 ")
      const reply = await it.say(`From: bell@example.test\r\nSubject: ${number}\r\n\r\n..dot\r\n.`)
      ids.push(idIn(reply))
    }
    const subjects = await Promise.all(ids.map((id) => get(`/v1/emails/${id}/content`)))
    expect(subjects.map(({ body }) => [body.data.subject, body.data.text])).toEqual([
      ["1", ".dot\n"],
      ["2", ".dot\n"],
    ])
  })

  test("AUTH LOGIN works, and an empty user name does not", async () => {
    const { key } = await service.project()
    using it = await client()
    const base64 = (text: string) => Buffer.from(text).toString("base64")
    const reply = await it.talk("AUTH LOGIN", base64("svc"), base64(key))
    expect(reply).toStartWith("235 ")
    using other = await client()
    expect(await other.say(plainLogin("", key))).toStartWith("535 5.7.8 unauthorized: ")
  })

  test("three failed logins end the connection", async () => {
    using it = await client()
    const wrong = plainLogin("svc", "svc_live_no")
    expect(bare(await it.say(wrong))).toBe(
      "535 5.7.8 unauthorized: The credential is missing or not valid. Send an API key or an access token. (req)",
    )
    expect(await it.say(wrong)).toStartWith("535 ")
    expect(await it.say(wrong)).toStartWith("421 4.7.0 login_rate_limit_exceeded: ")
    await it.end()
  })

  test("a refused mail leaves the session usable", async () => {
    const { key } = await service.project()
    using it = await client()
    await it.say(plainLogin("svc", key))
    const begin = ["MAIL FROM:<>", "RCPT TO:<ann@example.test>", "DATA"]
    await it.talk(...begin)
    const refused = await it.say("From: a@stranger.test\r\n\r\nx\r\n.")
    expect(refused).toStartWith("550 5.7.1 domain_not_verified: ")
    await it.talk(...begin)
    expect(await it.say("From: bell@example.test\r\n\r\nx\r\n.")).toStartWith(
      "250 2.0.0 Ok: queued",
    )
  })

  test("a recipient that is refused leaves the others", async () => {
    const { key } = await service.project()
    using it = await client()
    await it.talk(plainLogin("svc", key), "MAIL FROM:<>")
    expect(await it.say("RCPT TO:<nobody>")).toStartWith("501 5.1.3 ")
    expect(await it.say("RCPT TO:<ann@example.test>")).toStartWith("250 ")
    await it.say("DATA")
    expect(await it.say("From: bell@example.test\r\n\r\nx\r\n.")).toMatch(/as [0-9a-f-]{36}$/)
  })
})
