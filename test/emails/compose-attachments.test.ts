import { afterAll, describe, expect, test } from "bun:test"
import { createHash } from "node:crypto"
import PostalMime from "postal-mime"

import { parseMail } from "../../src/mailbox/parse-task"
import { attachable, MAIL, rawOf, read } from "./composed"

const folder = attachable()
afterAll(() => folder[Symbol.dispose]())

describe("attachments", () => {
  const every = Uint8Array.from({ length: 4_096 }, (_, index) => index % 256)

  test("arrive byte for byte, also message/rfc822 and text with bare line ends", async () => {
    const part = (filename: string, content_type: string, bytes: Uint8Array) => ({
      filename,
      content_type,
      content_id: null,
      path: folder.file(filename, bytes),
    })
    const inner = Buffer.from("Subject: inner\r\n\r\ntext\r\n")
    const parts = [
      part("bytes.bin", "application/octet-stream", every),
      part("Grüße, Turm.txt", "text/plain", Buffer.from("a\nb\rc")),
      part("broken.eml", "message/rfc822", Buffer.from("Subject: x\n\ny\u0000")),
      part("inner.eml", "message/rfc822", inner),
      part("odd.bin", "multipart/mixed", every),
    ]
    const bytes = [
      every,
      Buffer.from("a\nb\rc"),
      Buffer.from("Subject: x\n\ny\u0000"),
      inner,
      every,
    ]
    const mail = await rawOf({ ...MAIL, attachments: parts })
    const hash = (content: Uint8Array) => createHash("sha256").update(content).digest("hex")

    const { attachments } = await parseMail(mail)
    const found = attachments.map(({ filename, sha256 }) => [filename, sha256])
    expect(found).toEqual(
      parts.map(({ filename }, index) => [filename, hash(bytes[index] ?? every)]),
    )
    // A message within the message has no bytes of its own for this parser, only a meaning.
    const second = await PostalMime.parse(mail, { forceRfc822Attachments: true })
    const seen = second.attachments.map(({ filename, content }) => [
      filename,
      hash(new Uint8Array(content as ArrayBuffer)),
    ])
    const ofMessage = ([name]: unknown[]) => name !== "inner.eml"
    expect(seen.filter(ofMessage)).toEqual(found.filter(ofMessage))
    expect(seen).toHaveLength(found.length)
  })

  test("with a content id sit beside the html", async () => {
    const logo = {
      filename: "logo.png",
      content_type: "image/png",
      content_id: "logo@tower",
      path: folder.file("logo.png", every),
    }
    const mail = await read({ html: '<img src="cid:logo@tower">', attachments: [logo] })
    expect(Buffer.from(mail.raw).toString()).toContain("Content-Type: multipart/related")
    expect(mail.attachments).toMatchObject([
      { filename: "logo.png", disposition: "inline", contentId: "<logo@tower>", related: true },
    ])
  })

  test("whose file is gone stop the message", async () => {
    const gone = {
      filename: "a",
      content_type: "a/b",
      content_id: null,
      path: "/nowhere/gone",
    }
    expect(rawOf({ ...MAIL, attachments: [gone] })).rejects.toThrow()
  })
})
