import { describe, expect, test } from "bun:test"
import { createHash } from "node:crypto"
import { openWorkers } from "../../src/core/workers"
import { parse } from "../../src/mailbox/mailbox"
import { parseMail } from "../../src/mailbox/parse-task"

const RAW = [
  "Received: one",
  "Received: two",
  "From: bell@example.test",
  "Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=",
  'Content-Type: multipart/mixed; boundary="b"',
  "",
  "--b",
  "Content-Type: text/plain; charset=iso-8859-1",
  "Content-Transfer-Encoding: quoted-printable",
  "",
  "Gr=FC=DFe",
  "--b",
  "Content-Type: text/html",
  "",
  "<p>x</p>",
  "--b",
  'Content-Type: image/png; name="a.png"',
  "Content-ID: <logo@tower>",
  "Content-Disposition: attachment",
  "Content-Transfer-Encoding: base64",
  "",
  "AAEC",
  "--b--",
  "",
].join("\r\n")

describe("a mail is read", () => {
  test("with headers, bodies and attachments", async () => {
    const mail = await parseMail(Buffer.from(RAW))
    expect(mail.parse_error).toBeNull()
    expect(mail.html).toEndWith("<p>x</p>")
    expect(mail.headers).toMatchObject({ received: ["one", "two"], subject: "Grüße" })
    expect(mail.text?.trim()).toBe("Grüße")
    const sha256 = createHash("sha256")
      .update(Buffer.from([0, 1, 2]))
      .digest("hex")
    expect(mail.attachments).toEqual([
      {
        id: "0",
        filename: "a.png",
        content_type: "image/png",
        content_id: "logo@tower",
        size: 3,
        sha256,
      },
    ])
  })

  test("in the worker too", async () => {
    const workers = openWorkers({ size: 1 })
    const mail = await parse(workers, { project_id: "one", raw: Buffer.from(RAW) })
    await workers.close()
    expect(mail.headers.subject).toBe("Grüße")
  })

  test("as far as it goes where it is a bomb", async () => {
    const raw = Buffer.from(
      `Subject: bomb\r\n${nest(20_000)}\r\n\r\nx`, // each part within the one before
    )
    const mail = await parseMail(raw)
    expect(mail).toMatchObject({ html: null, text: null, attachments: [] })
    expect(mail.headers.subject).toBe("bomb")
    expect(mail.parse_error).toBeTruthy()
  })
})

function nest(depth: number): string {
  const parts: string[] = []
  for (let level = 0; level < depth; level++) {
    parts.push(`Content-Type: multipart/mixed; boundary=b${level}\r\n\r\n--b${level}`)
  }
  return parts.join("\r\n")
}
