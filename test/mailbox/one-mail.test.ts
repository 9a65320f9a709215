import { describe, expect, test } from "bun:test"
import { newId } from "../../src/core/ids"
import { refusal } from "../harness/client"
import { mail, NOBODY } from "../harness/mail"
import { sharedService } from "../harness/shared-service"
import { putMail, sendAndPut } from "./received"

const service = await sharedService()

describe("reading", () => {
  test("a mail is unread until somebody says that it is read", async () => {
    const project = await service.project()
    const [first, second] = [
      await putMail(service, project, { raw: "Subject: a\n\na\n" }),
      await putMail(service, project, { raw: "Subject: b\n\nb\n" }),
    ]
    const { body } = await project.get(`/v1/mailbox/${first}`)
    expect(body.data).toMatchObject({ read: false, raw_url: `/v1/mailbox/${first}/raw` })
    const idsOf = async (query: string) => {
      const { body: found } = await project.get(`/v1/mailbox?${query}`)
      return [found.data.map(({ id }: { id: string }) => id), found.meta.total]
    }
    expect(await idsOf("unread=true")).toEqual([[second, first], 2])

    const read = await project.call("PATCH", `/v1/mailbox/${first}`, { body: { read: true } })
    expect(read.body.data).toMatchObject({ id: first, read: true, headers: { subject: "a" } })
    expect(await idsOf("unread=true")).toEqual([[second], 1])
    expect(await idsOf("unread=false")).toEqual([[first], 1])
    expect(await idsOf("")).toEqual([[second, first], 2])

    await project.call("PATCH", `/v1/mailbox/${first}`, { body: { read: false } })
    expect(await idsOf("unread=true")).toEqual([[second, first], 2])
    expect((await project.get("/v1/mailbox?unread=perhaps")).status).toBe(422)
  })

  test("a change names nothing but whether it is read", async () => {
    const project = await service.project()
    const id = await putMail(service, project, { raw: "Subject: a\n\na\n" })
    for (const body of [{}, { read: "yes" }, { subject: "b" }, { read: null }]) {
      expect((await project.call("PATCH", `/v1/mailbox/${id}`, { body })).status).toBe(422)
    }
  })
})

describe("one mail", () => {
  test("goes with its number in the total, and its email stays", async () => {
    const project = await service.project()
    const { id, email_id } = await sendAndPut(service, project)
    const gone = await project.call("DELETE", `/v1/mailbox/${id}`)
    expect(gone.body.data).toEqual({ id, deleted: true })
    expect((await project.get("/v1/mailbox")).body.meta.total).toBe(0)
    expect(refusal(await project.call("DELETE", `/v1/mailbox/${id}`))).toEqual([404, "not_found"])
    expect((await project.get(`/v1/emails/${email_id}`)).status).toBe(200)
  })

  test("tells its envelope sender, and the organizations of the domains that the sender names", async () => {
    const project = await service.project()
    const raw =
      "From: A <a@news.example.co.uk>\nDKIM-Signature: v=1; d=mail.example.co.uk; s=x\nMessage-ID: <1@Example.co.uk>\n\nx\n"
    const id = await putMail(service, project, { raw, from: "b+1@bounce.elsewhere.test" })
    expect((await project.get(`/v1/mailbox/${id}`)).body.data).toMatchObject({
      envelope_from: "b+1@bounce.elsewhere.test",
      organizations: {
        "news.example.co.uk": "example.co.uk",
        "mail.example.co.uk": "example.co.uk",
        "example.co.uk": "example.co.uk",
        "bounce.elsewhere.test": "elsewhere.test",
      },
    })
  })

  test("is there as it came in, byte for byte", async () => {
    const project = await service.project()
    const raw = Buffer.from("Subject: \xff\r\n\r\n\xfe\r\n", "latin1")
    const id = await putMail(service, project, { raw })
    const answer = await project.get(`/v1/mailbox/${id}/raw`)
    expect(answer.headers.get("content-type")).toBe("message/rfc822")
    expect(Buffer.from(answer.bytes).equals(raw)).toBe(true)
  })

  test("gives its files as downloads, under names that are safe", async () => {
    const project = await service.project()
    const files = [
      { filename: "a.txt", content: "YWJj", content_type: "text/plain" },
      { filename: "b.html", content: btoa("<script>1</script>"), content_type: "text/html" },
    ]
    const { id } = await sendAndPut(service, project, mail({ attachments: files }))
    const { attachments } = (await project.get(`/v1/mailbox/${id}`)).body.data
    expect(attachments).toMatchObject([
      { id: "0", filename: "a.txt", content_type: "text/plain", size: 3, content_id: null },
      { id: "1", filename: "b.html", content_type: "text/html" },
    ])
    const fetched = await project.get(`/v1/mailbox/${id}/attachments/1`)
    expect(fetched.text).toBe("<script>1</script>")
    expect(fetched.headers.get("content-disposition")).toStartWith("attachment;")
    expect(fetched.headers.get("content-security-policy")).toContain("sandbox")
    for (const other of ["2", "x", "-1", "00000", "%2e%2e"]) {
      const answer = await project.get(`/v1/mailbox/${id}/attachments/${other}`)
      expect(refusal(answer)).toEqual([404, "not_found"])
    }
  })

  test("is nobody else's", async () => {
    const [one, two] = [await service.project(), await service.project()]
    const id = await putMail(service, one, { raw: "Subject: a\n\na\n" })
    for (const [method, path, body] of [
      ["GET", ""],
      ["PATCH", "", { read: true }],
      ["DELETE", ""],
      ["GET", "/raw"],
      ["GET", "/attachments/0"],
    ] as const) {
      for (const other of [id, NOBODY, newId(), "x"]) {
        const answer = await two.call(method, `/v1/mailbox/${other}${path}`, body && { body })
        expect(refusal(answer)).toEqual([404, "not_found"])
      }
    }
    expect((await one.get(`/v1/mailbox/${id}`)).body.data.read).toBe(false)
  })

  test("is marked with the right to read, and removed with the right to send", async () => {
    const project = await service.project({ scopes: ["email:read"] })
    const id = await putMail(service, project, { raw: "Subject: a\n\na\n" })
    expect(
      (await project.call("PATCH", `/v1/mailbox/${id}`, { body: { read: true } })).status,
    ).toBe(200)
    const refused = await project.call("DELETE", `/v1/mailbox/${id}`)
    expect(refusal(refused)).toEqual([403, "forbidden"])
  })
})
