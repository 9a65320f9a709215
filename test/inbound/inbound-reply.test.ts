import { describe, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import PostalMime from "postal-mime"
import { messages } from "../../src/messages/tables"
import { complaints, refusal } from "../harness/client"
import { deliverAll } from "../harness/delivery"
import { mail, NOBODY } from "../harness/mail"
import type { TestProject } from "../harness/service"
import { sharedService } from "../harness/shared-service"
import { received } from "./received"

const service = await sharedService()

/** At a domain that the project may send from. */
const HERE = { to_email: "support@example.test", domain: "example.test" }

/** The message as it left, read by another parser. */
async function sent(id: string) {
  const handed = await deliverAll(service)
  const own = handed.find(({ message_id }) => message_id === id)
  if (!own) throw new Error("the message was not sent")
  const raw = own.raw as Uint8Array
  const head = Buffer.from(raw).toString().split("\r\n\r\n")[0] ?? ""
  return { ...own, head, parsed: await PostalMime.parse(raw) }
}

const replyTo = (project: TestProject, id: string, body: object = { text: "Here." }) =>
  project.post(`/v1/inbound-emails/${id}/reply`, body)

describe("a reply", () => {
  test("to a suppressed author is refused, and so is a forward to such an address", async () => {
    const project = await service.project()
    const row = await received(service, project, HERE)
    await project.post("/v1/suppressions", { email: "ann@elsewhere.test" })
    expect(refusal(await replyTo(project, row.id))).toEqual([422, "suppressed_recipient"])
    const to = "Ann@Elsewhere.test"
    const forward = await project.post(`/v1/inbound-emails/${row.id}/forward`, { to })
    expect(refusal(forward)).toEqual([422, "suppressed_recipient"])
  })

  test("reaches an address that no grammar allows, and so does its suppression", async () => {
    const project = await service.project()
    const author = { ...HERE, from_email: "a..b.@elsewhere.test" }
    const { id } = await received(service, project, author)
    const { status, body } = await replyTo(project, id)
    expect([status, body.data?.to.email]).toEqual([201, '"a..b."@elsewhere.test'])
    const { to, head } = await sent(body.id)
    expect(to).toEqual(['"a..b."@elsewhere.test'])
    expect(head).toMatch(/^To: .*<"a\.\.b\."@elsewhere\.test>\r$/m)
    await project.post("/v1/suppressions", { email: '"a..b."@elsewhere.test' })
    expect(refusal(await replyTo(project, id))).toEqual([422, "suppressed_recipient"])
    const refused = await project.post("/v1/emails", mail({ to: "a..b.@elsewhere.test" }))
    expect(JSON.stringify(refused.body)).toContain('Write it as \\"a..b.\\"@elsewhere.test')
  })

  test("goes to the author, from the address that received, in the thread of the mail", async () => {
    const project = await service.project()
    const row = await received(service, project, {
      ...HERE,
      subject: "Where is my order?",
      rfc_message_id: "<2@elsewhere.test>",
      parsed: { references: ["<0@elsewhere.test>", "<1@example.test>"] },
    })
    const { status, body } = await replyTo(project, row.id)
    expect(status).toBe(201)
    expect(body.data).toMatchObject({
      id: body.id,
      status: "queued",
      to: { email: "ann@elsewhere.test", name: "Ann" },
    })
    const { parsed, to, head } = await sent(body.id)
    expect(to).toEqual(["ann@elsewhere.test"])
    expect(parsed).toMatchObject({
      from: { address: "support@example.test" },
      to: [{ address: "ann@elsewhere.test", name: "Ann" }],
      subject: "Re: Where is my order?",
      inReplyTo: "<2@elsewhere.test>",
      references: "<0@elsewhere.test> <1@example.test> <2@elsewhere.test>",
      text: "Here.\n",
    })
    expect(head).not.toMatch(/auto-submitted/i)
    const email = (await project.get(`/v1/emails/${body.id}`)).body.data
    expect(email).toMatchObject({ source: "inbound_reply", thread_id: row.id })
    expect(email.timeline[0].type).toBe("email.queued")
  })

  test("goes to Reply-To, with a copy to its other addresses", async () => {
    const project = await service.project()
    const reply_to = [
      { email: "desk@elsewhere.test", name: "The desk" },
      { email: "DESK@elsewhere.test", name: null },
      { email: "not an address", name: null },
      { email: "kim@elsewhere.test", name: null },
    ]
    const { id } = await received(service, project, { ...HERE, parsed: { reply_to } })
    const { body } = await replyTo(project, id)
    const email = (await project.get(`/v1/emails/${body.id}`)).body.data
    expect(email.to).toEqual({ email: "desk@elsewhere.test", name: "The desk" })
    expect(email.cc).toEqual([{ email: "kim@elsewhere.test", name: null }])
  })

  test("has html, a subject, a sender and files of its own where they are given", async () => {
    const project = await service.project()
    const { id } = await received(service, project, HERE)
    const file = { filename: "Rechnung für Ann.txt", content: btoa("Ding") }
    const own = { html: "<p>Hi</p>", subject: "Other", from: "Bell <bell@example.test>" }
    const { body } = await replyTo(project, id, { ...own, attachments: [file] })
    const { parsed } = await sent(body.id)
    expect(parsed).toMatchObject({
      subject: "Other",
      from: { address: "bell@example.test", name: "Bell" },
      html: expect.stringMatching(/^<p>Hi<\/p>/),
      attachments: [{ filename: "Rechnung für Ann.txt" }],
    })
  })

  test("to a reply-tracking address comes from the sender of the answered email", async () => {
    const project = await service.project()
    const { id: email_id } = (await project.post("/v1/emails", mail())).body
    const { id } = await received(service, project, {
      to_email: "r+token@mx.belfry.test",
      domain: "mx.belfry.test",
      replied_to_message_id: email_id,
    })
    const { body } = await replyTo(project, id)
    const { data } = (await project.get(`/v1/emails/${body.id}`)).body
    expect(data.from.email).toBe("bell@example.test")
  })

  test("is sent once for one Idempotency-Key", async () => {
    const project = await service.project()
    const { id } = await received(service, project, HERE)
    const path = `/v1/inbound-emails/${id}/reply`
    const ask = () => project.post(path, { text: "x" }, { "idempotency-key": "one" })
    const [first, second] = [await ask(), await ask()]
    expect(second.body.id).toBe(first.body.id)
    expect(second.headers.get("idempotent-replayed")).toBe("true")
    const rows = await service.store.read
      .select({ id: messages.id })
      .from(messages)
      .where(eq(messages.project_id, project.project_id))
    expect(rows).toHaveLength(1)
  })
})

describe("a reply is refused", () => {
  const session = {
    address: "192.0.2.1",
    helo: "mx.elsewhere.test",
    to: ["support@example.test"],
    tls: null,
  }
  test.each<[string, Parameters<typeof received>[2], string]>([
    ["an automatic mail", { auto_submitted: "auto-replied" }, "auto_submitted"],
    ["an auto-reply", { kind: "auto_reply" }, "auto_submitted"],
    ["a bounce", { kind: "bounce" }, "auto_submitted"],
    ["a report", { kind: "dmarc_report" }, "auto_submitted"],
    ["the null sender", { session: { ...session, mail_from: "" } }, "null_sender"],
    ["a mail without an author", { from_email: null }, "no_sender"],
    ["an author that is no address", { from_email: "a b@c" }, "no_sender"],
    ["a mail that is not processed", { status: "received" }, "not_processed"],
  ])("to %s", async (_, row, reason) => {
    const project = await service.project()
    const { id } = await received(service, project, { ...HERE, ...row })
    const refused = await replyTo(project, id)
    expect(refusal(refused)).toEqual([409, "conflict"])
    expect(refused.body.error.details).toEqual({ reason, id })
  })

  test("but not for a word that only says that a person wrote", async () => {
    const project = await service.project()
    const { id } = await received(service, project, { ...HERE, auto_submitted: "no" })
    expect((await replyTo(project, id)).status).toBe(201)
  })

  test("from a domain that is not verified, as every send", async () => {
    const project = await service.project()
    const { id } = await received(service, project)
    expect(refusal(await replyTo(project, id))).toEqual([400, "domain_not_verified"])
    const other = await replyTo(project, id, { text: "x", from: "a@elsewhere.test" })
    expect(refusal(other)).toEqual([400, "domain_not_verified"])
  })

  test("from a bare postmaster, unless the project or the request names a sender", async () => {
    const project = await service.project()
    const { id } = await received(service, project, { to_email: "postmaster", domain: "" })
    expect(refusal(await replyTo(project, id))).toEqual([400, "sender_not_configured"])
    const named = { text: "x", from: "bell@example.test" }
    expect((await replyTo(project, id, named)).status).toBe(201)
  })

  test.each<[object, string]>([
    [{}, "html"],
    [{ text: "" }, "html"],
    [{ text: "x", subject: "a\r\nBcc: b@c.test" }, "subject"],
    [{ text: "x", subject: "" }, "subject"],
    [{ text: "x", from: "a@b.test, c@d.test" }, "from"],
    [{ text: "x", attachments: [{ filename: "../x", content: "" }] }, "attachments.0.filename"],
  ])("with %j", async (body, field) => {
    const project = await service.project()
    const { id } = await received(service, project, HERE)
    const refused = await replyTo(project, id, body)
    expect([refused.status, complaints(refused)]).toEqual([422, [field]])
  })
})

describe("what a stranger wrote", () => {
  test("as subject or name makes no header of the reply", async () => {
    const project = await service.project()
    const { id } = await received(service, project, {
      ...HERE,
      subject: "Hi\r\nBcc: victim@elsewhere.test\r\n\r\nbody\u2028\u0001",
      from_name: 'Ann\r\nX-Evil: 1 <b@c.test>"',
    })
    const { body } = await replyTo(project, id)
    const { parsed, head, to } = await sent(body.id)
    expect(to).toEqual(["ann@elsewhere.test"])
    expect(head).not.toMatch(/^(bcc|x-evil):/im)
    expect(parsed.subject).toBe("Re: Hi Bcc: victim@elsewhere.test body")
  })

  test("as references is cut to the first and the last ones, and holds nothing but ids", async () => {
    const project = await service.project()
    const many = Array.from({ length: 900 }, (_, at) => `<${at}@elsewhere.test>`)
    const bad = [
      "<a b@c.test>",
      "<a>\r\nX-Evil: 1",
      `<${"x".repeat(4000)}@c.test>`,
      "plain",
      "<ü@a.b>",
    ]
    const { id } = await received(service, project, {
      ...HERE,
      rfc_message_id: "<last@elsewhere.test>",
      parsed: { references: [...many, ...bad] },
    })
    const { body } = await replyTo(project, id)
    const { parsed, head } = await sent(body.id)
    const ids = parsed.references?.split(" ") ?? []
    expect(ids).toHaveLength(20)
    expect([ids[0], ids[1], ids.at(-1)]).toEqual([many[0], many[882], "<last@elsewhere.test>"])
    expect(head).not.toContain("X-Evil")
    expect(Math.max(...head.split("\r\n").map(({ length }) => length))).toBeLessThan(998)
  })

  test.each<[string | null, string]>([
    ["Re: A question", "Re: A question"],
    ["RE: A question", "RE: A question"],
    ["re:A question", "re:A question"],
    [null, "Re: (no subject)"],
    ["", "Re: (no subject)"],
    ["Regarding", "Re: Regarding"],
    ["x".repeat(2000), `Re: ${"x".repeat(994)}`],
  ])("as subject %.20j is answered as %.20j", async (subject, expected) => {
    const project = await service.project()
    const { id } = await received(service, project, { ...HERE, subject })
    const { body } = await replyTo(project, id)
    expect((await project.get(`/v1/emails/${body.id}`)).body.data.subject).toBe(expected)
  })

  test("without a Message-ID is answered without a thread header", async () => {
    const project = await service.project()
    const bare = { rfc_message_id: null, in_reply_to: null }
    const { id } = await received(service, project, { ...HERE, ...bare })
    const { body } = await replyTo(project, id)
    expect((await sent(body.id)).head).not.toMatch(/^(references|in-reply-to):/im)
  })
})

describe("a forward", () => {
  const forward = (project: TestProject, id: string, body: object = { to: "kim@example.test" }) =>
    project.post(`/v1/inbound-emails/${id}/forward`, body)

  test("has the text, the files and the author of the mail, who gets the answers", async () => {
    const project = await service.project()
    const { id } = await received(service, project, {
      ...HERE,
      bodies: { text_body: "Where is it?", html_body: "<b>Where is it?</b>" },
      files: [
        { content: "Ding", filename: "../Bericht für Ann.txt" },
        { content: "png", filename: null, content_type: "image/png", content_id: "<logo@x>" },
      ],
    })
    const { status, body } = await forward(project, id)
    expect(status).toBe(201)
    const { parsed, to } = await sent(body.id)
    expect(to).toEqual(["kim@example.test"])
    expect(parsed).toMatchObject({
      from: { address: "support@example.test" },
      subject: "Fwd: A question",
      replyTo: [{ address: "ann@elsewhere.test", name: "Ann" }],
    })
    expect(parsed.text).toContain("From: Ann <ann@elsewhere.test>")
    expect(parsed.text).toContain("Where is it?")
    expect(parsed.html).toContain("From: Ann &lt;ann@elsewhere.test&gt;")
    expect(parsed.html).toContain("<b>Where is it?</b>")
    expect(parsed.attachments.map(({ filename }) => filename).toSorted()).toEqual([
      "Bericht für Ann.txt",
      "attachment",
    ])
    const email = (await project.get(`/v1/emails/${body.id}`)).body.data
    expect(email).toMatchObject({ source: "inbound_reply", thread_id: body.id })
  })

  test("that would bring the mail back to its address is refused", async () => {
    const project = await service.project()
    const { id, to_email } = await received(service, project, HERE)
    const chain = { match: { to: "next@b.test" }, action: "forward", target: to_email }
    expect((await project.post("/v1/inbound-routes", chain)).status).toBe(201)
    for (const to of [to_email, to_email.toUpperCase(), "next@b.test"])
      expect(complaints(await forward(project, id, { to }))).toEqual(["to"])
  })

  test("of a mail that could not be read has it as a file", async () => {
    const project = await service.project()
    const { id } = await received(service, project, { ...HERE, parse_error: true })
    const { body } = await forward(project, id)
    const { parsed } = await sent(body.id)
    const [file] = parsed.attachments
    expect(file?.filename).toBe("message.eml")
    expect(Buffer.from(file?.content as ArrayBuffer).toString()).toContain("Where is it?")
  })

  test("of an automatic mail is allowed, but a lost file and a large one are not", async () => {
    const project = await service.project()
    const bounce = await received(service, project, { ...HERE, kind: "bounce" })
    expect((await forward(project, bounce.id)).status).toBe(201)
    const lost = { sha256: "0".repeat(64), content: "x" }
    const half = await received(service, project, { ...HERE, files: [lost] })
    expect(refusal(await forward(project, half.id))).toEqual([404, "not_found"])
    const files = [{ content: "x".repeat(11_000_000) }]
    const large = await received(service, project, { ...HERE, files })
    expect(refusal(await forward(project, large.id))).toEqual([413, "payload_too_large"])
  })

  test.each<[object, string]>([
    [{}, "to"],
    [{ to: "kim" }, "to"],
    [{ to: ["a@b.test", "c@d.test"] }, "to"],
    [{ to: "kim@example.test", from: "x" }, "from"],
  ])("with %j is refused", async (body, field) => {
    const project = await service.project()
    const { id } = await received(service, project, HERE)
    const refused = await forward(project, id, body)
    expect([refused.status, complaints(refused)]).toEqual([422, [field]])
  })

  test("of nobody's mail is not found", async () => {
    const project = await service.project()
    expect(refusal(await forward(project, NOBODY))).toEqual([404, "not_found"])
  })
})
