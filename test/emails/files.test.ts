import { describe, expect, test } from "bun:test"
import { rm } from "node:fs/promises"
import { eq } from "drizzle-orm"
import PostalMime from "postal-mime"
import { messageFiles } from "../../src/messages/tables"
import { refusal } from "../harness/client"
import { deliverAll } from "../harness/delivery"
import { mail, NOBODY } from "../harness/mail"
import { sharedService } from "../harness/shared-service"

const service = await sharedService()

const file = {
  filename: "Bericht für Ann.txt",
  content: Buffer.from("Ding\n").toString("base64"),
  content_type: "text/html",
}

const whole = mail({
  to: "Ann Bell <Ann@example.test>",
  cc: "copy@example.test",
  bcc: ["hidden@example.test"],
  subject: "Grüße ✓",
  html: "<h1>Ding</h1><p>Dong</p>",
  text: undefined,
  reply_to: "desk@example.test",
  headers: { "X-Kind": "bell" },
  attachments: [file],
})

/** An email of a new project, with everything in it. */
async function sendWhole() {
  const project = await service.project()
  const { id } = (await project.post("/v1/emails", whole)).body
  const get = async (rest = "") => (await project.get(`/v1/emails/${id}${rest}`)).body?.data
  return { project, id, get }
}

describe("the raw message", () => {
  test("is not there before the first attempt", async () => {
    const { project, id } = await sendWhole()
    expect(refusal(await project.get(`/v1/emails/${id}/raw`))).toEqual([404, "not_found"])
  })

  test("is the very bytes that were handed over, and another parser reads them", async () => {
    const { project, id } = await sendWhole()
    const handed = await deliverAll(service)
    const { status, headers, bytes } = await project.get(`/v1/emails/${id}/raw`)
    expect([status, headers.get("content-type")]).toEqual([200, "message/rfc822"])
    expect(headers.get("x-request-id")).toMatch(/^req_/)
    const own = handed.find(({ message_id }) => message_id === id)
    expect(Buffer.from(own?.raw ?? []).equals(Buffer.from(bytes))).toBe(true)
    expect(own?.to).toEqual(["Ann@example.test", "copy@example.test", "hidden@example.test"])

    const parsed = await PostalMime.parse(bytes)
    expect(parsed).toMatchObject({
      subject: "Grüße ✓",
      messageId: `<${id}@example.test>`,
      from: { address: "bell@example.test" },
      to: [{ address: "Ann@example.test", name: "Ann Bell" }],
      cc: [{ address: "copy@example.test" }],
    })
    expect(parsed.html).toContain("<h1>Ding</h1>")
    expect(parsed.attachments).toHaveLength(1)
    expect(Buffer.from(bytes).includes("hidden@example.test")).toBe(false)
  })
})

describe("an attachment", () => {
  test("comes back byte by byte, as a download", async () => {
    const { project, id, get } = await sendWhole()
    const [{ id: file_id }] = (await get()).attachments
    const found = await project.get(`/v1/emails/${id}/attachments/${file_id}`)
    expect([found.status, found.text]).toEqual([200, "Ding\n"])
    const disposition =
      "attachment; filename=\"Bericht f_r Ann.txt\"; filename*=UTF-8''Bericht%20f%C3%BCr%20Ann.txt"
    expect(found.headers.get("content-disposition")).toBe(disposition)
    expect(found.headers.get("content-type")).toBe("text/html")
    expect(found.headers.get("x-content-type-options")).toBe("nosniff")
  })

  test("of another email is not found", async () => {
    const { project, id } = await sendWhole()
    const second = (await project.post("/v1/emails", whole)).body.id
    const { attachments } = (await project.get(`/v1/emails/${second}`)).body.data
    for (const file_id of [attachments[0].id, NOBODY, "x"]) {
      const absent = await project.get(`/v1/emails/${id}/attachments/${file_id}`)
      expect(refusal(absent)).toEqual([404, "not_found"])
    }
  })

  test("of ten megabytes survives the way", async () => {
    const project = await service.project()
    const bytes = Buffer.alloc(10_000_000, "Belfry ")
    const content = bytes.toString("base64")
    const large = mail({ attachments: [{ filename: "l.bin", content }] })
    const { id } = (await project.post("/v1/emails", large)).body
    const { attachments } = (await project.get(`/v1/emails/${id}`)).body.data
    const found = await project.get(`/v1/emails/${id}/attachments/${attachments[0].id}`)
    expect(Buffer.from(found.bytes).equals(bytes)).toBe(true)
  })
})

describe("an email whose texts are longer than a row holds", () => {
  const html = `<p>Grüße ✓</p>${"<p>Ding, dong.</p>\r\n".repeat(40_000)}`
  const filesOf = async (message_id: string) => {
    const { store } = service.parts
    const ours = eq(messageFiles.message_id, message_id)
    return (await store.read.select().from(messageFiles).where(ours)).map(({ sha256 }) => sha256)
  }

  test.each([
    ["html", { html, text: undefined }],
    ["html and text", { html, text: "Grüße, in short" }],
    ["text", { html: undefined, text: `Grüße\r\n${html}` }],
  ])("is delivered, read and sent again as it was given: %s", async (_, texts) => {
    const project = await service.project()
    const { id } = (await project.post("/v1/emails", mail({ ...texts }))).body
    const again = (await project.post(`/v1/emails/${id}/resend`, {})).body.id
    const handed = await deliverAll(service)
    for (const one of [id, again]) {
      const parsed = await PostalMime.parse(
        handed.find((sent) => sent.message_id === one)?.raw ?? "",
      )
      if (texts.html)
        expect(parsed.html?.replaceAll("\r\n", "\n").trim()).toBe(
          html.replaceAll("\r\n", "\n").trim(),
        )
      const { data } = (await project.get(`/v1/emails/${one}/content`)).body
      expect(data.html).toBe(texts.html ?? null)
      if (texts.text) expect(data.text).toBe(texts.text)
    }
    const [first, second] = [await filesOf(id), await filesOf(again)]
    expect(first.filter((name) => second.includes(name))).toHaveLength(1) // the texts; the bytes that left differ
  })

  test("is shown without them where the file is lost", async () => {
    const project = await service.project()
    const lost = { html, text: "This text alone is lost." }
    const { id } = (await project.post("/v1/emails", mail(lost))).body
    for (const name of await filesOf(id)) await rm(service.parts.blobs.path(name))
    const { status, body } = await project.get(`/v1/emails/${id}`)
    expect([status, body.data.html]).toEqual([200, null])
    expect(refusal(await project.get(`/v1/emails/${id}/content`))).toEqual([404, "not_found"])
    expect(refusal(await project.post(`/v1/emails/${id}/resend`, {}))).toEqual([409, "conflict"])
  })
})
