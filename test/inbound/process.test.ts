import { afterAll, describe, expect, test } from "bun:test"
import { and, eq } from "drizzle-orm"
import type { Resolver } from "../../src/core/dns"
import { emailIdHeader, localPartFor } from "../../src/core/mail-token"
import { events } from "../../src/events/tables"
import { mailContent, rawMail } from "../../src/inbound/raw-mail"
import { type InboundRow, inboundEmails, inboundFiles } from "../../src/inbound/tables"
import { messages } from "../../src/messages/tables"
import { total } from "../../src/store/counters"
import { deliverAll } from "../harness/delivery"
import { until } from "../harness/hooks"
import { addReceivingDomain } from "../harness/inbound-rows"
import { HOST, idsIn, inboundServer } from "../harness/inbound-server"
import { mail } from "../harness/mail"
import { quietLog } from "../harness/quiet"
import type { TestProject } from "../harness/service"
import { sharedService } from "../harness/shared-service"

const logged = quietLog()

const service = await sharedService()
const { store, parts } = service
const { secrets, inbound_blobs } = parts
const server = await inboundServer(service)
afterAll(() => server[Symbol.asyncDispose]())

async function receiving() {
  const project = await service.project()
  return { project, domain: await addReceivingDomain(store, project) }
}

async function receive(to: string, raw: string | Uint8Array, from?: string): Promise<InboundRow> {
  const rows = await server.receive({ to, raw, ...(from !== undefined && { from }) })
  const [row] = rows
  if (!row) throw new Error("the mail has no row")
  return row
}

const eventsOf = (subject_id: string) =>
  store.read.select().from(events).where(eq(events.subject_id, subject_id)).orderBy(events.id)

const typesOf = async (subject_id: string) => (await eventsOf(subject_id)).map(({ type }) => type)

/** An email of the project that was handed over. */
async function sent(project: TestProject, more: Record<string, unknown> = {}) {
  const { body } = await project.post("/v1/emails", mail(more))
  await deliverAll(service, (email) => ({ ...SENT, address: email }))
  const [row] = await store.read.select().from(messages).where(eq(messages.id, body.id))
  if (!row) throw new Error("the email is not there")
  return row
}

const SENT = {
  status: "sent" as const,
  reason: null,
  bounce_subtype: null,
  code: null,
  reply: { smtp_code: 250, enhanced_code: "2.0.0", response: "ok", mx: null, tls: null },
}

const statusOf = async (id: string) => {
  const [row] = await store.read.select().from(messages).where(eq(messages.id, id))
  return row?.status
}

const NEW = `From: "Ann, of Elsewhere" <Ann@Elsewhere.test>
To: Support <support@in.test>, other@in.test
Cc: =?utf-8?q?Caf=C3=A9?= <cafe@in.test>
Reply-To: answers@elsewhere.test
Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=
Message-ID: <new-1@elsewhere.test>
Date: Sun, 22 Nov 2026 10:00:00 +0000
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="b1"

--b1
Content-Type: multipart/alternative; boundary="b2"

--b2
Content-Type: text/plain; charset=utf-8
Content-Transfer-Encoding: 8bit

Hällo
--b2
Content-Type: text/html; charset=utf-8
Content-Transfer-Encoding: quoted-printable

<p>H=C3=A4llo</p>
--b2--
--b1
Content-Type: application/pdf; name="a.pdf"
Content-Disposition: attachment; filename="a.pdf"
Content-ID: <file-1@elsewhere.test>
Content-Transfer-Encoding: base64

JVBERi0xLjQK
--b1--
`

describe("a mail", () => {
  test("is read whole, and told with everything that the contract names", async () => {
    const { project, domain } = await receiving()
    const row = await receive(`Support+AbC@${domain}`, NEW)
    expect(row).toMatchObject({
      status: "processed",
      kind: "new",
      project_id: project.project_id,
      from_email: "ann@elsewhere.test",
      from_name: "Ann, of Elsewhere",
      subject: "Grüße",
      rfc_message_id: "<new-1@elsewhere.test>",
      thread_id: row.id,
      mailbox_hash: "AbC",
      replied_to_message_id: null,
      parse_error: false,
    })
    expect(row.spf_verdict).toBeOneOf(["none", "temperror"])
    const [event] = await eventsOf(row.id)
    expect(event).toMatchObject({ type: "email.received", id: row.event_id ?? "" })
    const { inbound, ...data } = event?.data ?? {}
    expect(data).toEqual({
      message_id: row.id,
      recipient_email: `support+abc@${domain}`,
      timestamp: row.created_at,
    })
    expect(inbound).toMatchObject({
      to: [
        { email: "support@in.test", name: "Support" },
        { email: "other@in.test", name: null },
      ],
      cc: [{ email: "cafe@in.test", name: "Café" }],
      reply_to: [{ email: "answers@elsewhere.test", name: null }],
      text_body: "Hällo",
      html_body: "<p>Hällo</p>",
      truncated: false,
      attachments: [
        {
          id: "0",
          filename: "a.pdf",
          content_type: "application/pdf",
          size: 9,
          content_id: "file-1@elsewhere.test",
          disposition: "attachment",
          url: expect.stringMatching(/^http:\/\/belfry\.test\/v1\/files\/./),
          expires_at: expect.any(String),
        },
      ],
    })
    const [file] = row.parsed?.attachments ?? []
    expect(Buffer.from((await inbound_blobs.get(file?.sha256 ?? "")) ?? []).toString()).toBe(
      "%PDF-1.4\n",
    )
    const named = await store.read
      .select()
      .from(inboundFiles)
      .where(eq(inboundFiles.inbound_id, row.id))
    expect(named.map(({ sha256 }) => sha256)).toEqual([file?.sha256 ?? ""])
    expect(await total(store.read, project.project_id, "inbound_emails")).toBe(1)
  })

  test("for several recipients is read once, and each has its own row and event", async () => {
    const { domain } = await receiving()
    const { domain: theirs } = await receiving()
    const rows = await server.receive({
      to: [`a@${domain}`, `b@${theirs}`, `c@${domain}`],
      raw: NEW,
    })
    expect(rows.map(({ status }) => status)).toEqual(["processed", "processed", "processed"])
    for (const row of rows) expect(await typesOf(row.id)).toEqual(["email.received"])
    expect(new Set(rows.map(({ event_id }) => event_id)).size).toBe(3)
  })

  test("that is processed twice is told once", async () => {
    const { project, domain } = await receiving()
    const ids = idsIn(await server.offer({ to: `a@${domain}`, raw: NEW }))
    const job = { created_at: new Date().toISOString() } as never
    const runs = await Promise.all([
      server.handler.run({ ids }, job),
      server.handler.run({ ids }, job),
    ])
    for (const run of runs) await store.tx((tx) => server.ended(tx, run))
    await server.work()
    expect(await typesOf(ids[0] ?? "")).toEqual(["email.received"])
    expect(await total(store.read, project.project_id, "inbound_emails")).toBe(1)
  })

  test("with long bodies has them in a file, and not in its event", async () => {
    const { domain } = await receiving()
    const text = `${"0123456789\n".repeat(30_000)}end`
    const row = await receive(`a@${domain}`, `Subject: long\n\n${text}\n`)
    const [event] = await eventsOf(row.id)
    expect(event?.data.inbound).toMatchObject({ text_body: null, truncated: true })
    const content = await mailContent(store.read, inbound_blobs, row.id)
    expect(content.text_body?.trimEnd()).toBe(text)
  })

  test.each([
    ["too deep", nested(60)],
    ["of too many parts", `${MULTIPART}\n${"--b\n\nx\n".repeat(1_100)}--b--\n`],
    ["of too many fields", `${"X-A: b\n".repeat(1_100)}Subject: s\n\ntext\n`],
  ])("%s is told with parse_error, and its raw message is there", async (_, raw) => {
    const { domain } = await receiving()
    const row = await receive(`a@${domain}`, raw)
    expect(row).toMatchObject({ status: "processed", parse_error: true })
    expect(await typesOf(row.id)).toEqual(["email.received"])
    expect(await rawMail({ read: store.read, inbound_blobs }, row)).toHaveLength(row.size)
  })

  test.each([
    ["nothing", ""],
    ["no header", "\n\nonly text\n"],
    ["NUL in encoded words", "Subject: =?utf-8?q?a=00b?=\nFrom: =?utf-8?q?=00?= <a@b.test>\n\nx\n"],
    [
      "half characters",
      `Subject: =?utf-16le?b?${Buffer.from([0, 0xd8]).toString("base64")}?=\n\nx\n`,
    ],
    ["an unknown charset", "Content-Type: text/plain; charset=klingon\n\nx\n"],
    ["a multipart without boundary", "Content-Type: multipart/mixed\n\nx\n"],
    ["broken base64", "Content-Type: text/plain\nContent-Transfer-Encoding: base64\n\n***\n"],
  ])("of %s is processed", async (_, raw) => {
    const { domain } = await receiving()
    const row = await receive(`a@${domain}`, raw)
    expect(row.status).toBe("processed")
    expect(await typesOf(row.id)).toEqual(["email.received"])
  })
})

/** With others in one task, and alone. */
const READERS = ["read-small-mails", "parse-inbound"]

describe("a thread that fails", () => {
  const failing = (fails: (whole: boolean) => Error | undefined) => ({
    ...parts.workers,
    run: async <T>(task: string, input: unknown, options: { deadline_ms: number }) => {
      const { whole = true } = input as { whole?: boolean }
      const error = READERS.includes(task) && fails(whole)
      if (error) throw error
      return parts.workers.run<T>(task, input, options)
    },
  })
  const bug = (code?: string) => Object.assign(new RangeError("a bug"), code ? { code } : {})

  test.each<[string, (whole: boolean) => Error | undefined, string | null]>([
    ["over the bodies", (whole) => (whole ? bug("ERR_OUT_OF_RANGE") : undefined), "Grüße"],
    ["over the header, too", () => bug(), null],
  ])("%s leaves a mail with parse_error, which is told", async (_, fails, subject) => {
    const { domain } = await receiving()
    await using it = await inboundServer(service, { workers: failing(fails) })
    const [row] = await it.receive({ to: `a@${domain}`, raw: NEW })
    expect(row).toMatchObject({ status: "processed", parse_error: true, subject })
    expect(await typesOf(row?.id ?? "")).toEqual(["email.received"])
  })

  test("for want of room does not settle the mail: it is read again", async () => {
    const { domain } = await receiving()
    let is_full = true
    const full = () => (is_full ? bug("ENOSPC") : undefined)
    await using it = await inboundServer(service, { workers: failing(full) })
    const ids = idsIn(await it.offer({ to: `a@${domain}`, raw: NEW }))
    await expect(it.work()).rejects.toThrow("a bug")
    is_full = false
    await it.work()
    expect(await it.rowsOf(ids)).toMatchObject([{ status: "processed", parse_error: false }])
  })
})

test("a flood of mail whose name servers are silent holds eight places, not all of them", async () => {
  const { domain } = await receiving()
  const answer = Promise.withResolvers<never[]>()
  const silent = () => answer.promise
  const dns = {
    txt: silent,
    mx: silent,
    ptr: silent,
    a: silent,
    aaaa: silent,
  } as unknown as Resolver
  const verdicts = { workers: parts.workers, dns, host: HOST, dns_ms: 60_000 }
  await using it = await inboundServer(service, { verdicts })
  const ids: string[] = []
  for (let at = 0; at < 20; at++) {
    const raw = "Subject: s\n\nx\n"
    ids.push(...idsIn(await it.offer({ to: `a@${domain}`, from: `x@flood${at}.test`, raw })))
  }
  const job = { created_at: new Date().toISOString() } as never
  let over = 0
  const runs = ids.map(async (id) => {
    const result = await it.handler.run({ ids: [id] }, job)
    await store.tx((tx) => it.ended(tx, result))
    over += 1
  })
  await until(() => over >= 12)
  expect(over).toBe(12)
  answer.resolve([])
  await Promise.all(runs)
  const rows = await it.rowsOf(ids)
  expect(rows.filter(({ spf_verdict }) => spf_verdict === "temperror")).toHaveLength(12)
})

const MULTIPART = 'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="b"\n'

function nested(depth: number): string {
  const open = (at: number) => `Content-Type: multipart/mixed; boundary="b${at}"\n\n--b${at}\n`
  return Array.from({ length: depth }, (_, at) => open(at)).join("")
}

const answerTo = (head: string) => `From: to@elsewhere.test\n${head}Subject: Re: Hi\n\nThanks\n`

describe("an answer", () => {
  test("to r+ names its email, with the metadata, whatever its header says", async () => {
    const { project } = await receiving()
    const email = await sent(project, { metadata: { order: "1042" } })
    const other = await sent(project)
    const local = localPartFor(secrets, "r", email.id)
    const row = await receive(
      `${local}@${HOST}`,
      answerTo(`In-Reply-To: ${other.rfc_message_id}\n`),
    )
    expect(row).toMatchObject({
      kind: "reply",
      replied_to_message_id: email.id,
      thread_id: email.id,
      mailbox_hash: local.slice(2),
      project_id: project.project_id,
    })
    expect(row.parsed?.reply_to_metadata).toEqual({ order: "1042" })
  })

  test("is found by In-Reply-To, then by References from the end, and then without metadata", async () => {
    const { project, domain } = await receiving()
    const [one, two] = [await sent(project, { metadata: { a: "1" } }), await sent(project)]
    const by = async (head: string) => {
      const row = await receive(`a@${domain}`, answerTo(head))
      return [row.kind, row.replied_to_message_id, row.parsed?.reply_to_metadata]
    }
    const both = `References: ${one.rfc_message_id} ${two.rfc_message_id} <unknown@x.test>\n`
    expect(await by(`In-Reply-To: ${one.rfc_message_id}\n${both}`)).toEqual(["reply", one.id, null])
    expect(await by(both)).toEqual(["reply", two.id, null])
    expect(await by(`In-Reply-To: <unknown@x.test>\n${both}`)).toEqual(["reply", two.id, null])
    expect(await by("In-Reply-To: <unknown@x.test>\n")).toEqual(["new", null, null])
  })

  test("belongs to the one of several emails with a Message-ID whose recipient wrote it", async () => {
    const { project, domain } = await receiving()
    const rfc_message_id = "<shared@client.test>"
    const emails = []
    for (const to of ["x@elsewhere.test", "to@elsewhere.test", "y@elsewhere.test"]) {
      const email = await sent(project, { to })
      const change = { rfc_message_id, source: "smtp" }
      await store.tx((tx) => tx.update(messages).set(change).where(eq(messages.id, email.id)))
      emails.push(email.id)
    }
    const answer = (from: string) => `From: ${from}\nIn-Reply-To: ${rfc_message_id}\n\nThanks\n`
    const from = async (author: string) =>
      (await receive(`a@${domain}`, answer(author))).replied_to_message_id
    expect(await from("TO@elsewhere.test")).toBe(emails[1] ?? "")
    expect(await from("y@elsewhere.test")).toBe(emails[2] ?? "")
    expect(await from("stranger@elsewhere.test")).toBe(emails[0] ?? "")
  })

  test("to an email of another project is none", async () => {
    const { project } = await receiving()
    const { domain: theirs } = await receiving()
    const email = await sent(project)
    const row = await receive(`a@${theirs}`, answerTo(`In-Reply-To: ${email.rfc_message_id}\n`))
    expect(row).toMatchObject({ kind: "new", replied_to_message_id: null })
  })

  test("to a mail that came in joins its thread", async () => {
    const { domain } = await receiving()
    const first = await receive(`a@${domain}`, NEW)
    const next = await receive(`a@${domain}`, answerTo("References: <new-1@elsewhere.test>\n"))
    expect(next).toMatchObject({ kind: "new", thread_id: first.id, replied_to_message_id: null })
  })
})

interface Report {
  to?: string
  action?: string
  status?: string
  returned?: string
}

const dsn = ({
  to = "to@elsewhere.test",
  action = "failed",
  status = "5.1.1",
  returned = "",
}: Report = {}) => `From: MAILER-DAEMON@elsewhere.test (Mail Delivery System)
Subject: Undelivered Mail Returned to Sender
Auto-Submitted: auto-replied
MIME-Version: 1.0
Content-Type: multipart/report; report-type=delivery-status; boundary="r"

--r
Content-Type: text/plain; charset=us-ascii

This is the mail system at host mx.elsewhere.test.

--r
Content-Type: message/delivery-status

Reporting-MTA: dns; mx.elsewhere.test

Final-Recipient: rfc822; ${to}
Original-Recipient: rfc822;${to}
Action: ${action}
Status: ${status}
Remote-MTA: dns; mx2.elsewhere.test
Diagnostic-Code: smtp; ${status.replace(/^(\d)\..*/, "$150")} ${status} <${to}>: Recipient address rejected

--r
Content-Type: text/rfc822-headers

${returned}Subject: Ding

--r--
`

const pathOf = (id: string) => `${localPartFor(secrets, "b", id)}@${HOST}`

describe("a delivery report to the return path", () => {
  test("that failed makes the email bounced, once, with the words of the server", async () => {
    const { project } = await receiving()
    const email = await sent(project, { to: "to@elsewhere.test" })
    const row = await receive(pathOf(email.id), dsn(), "")
    expect(row).toMatchObject({
      kind: "bounce",
      replied_to_message_id: email.id,
      thread_id: email.id,
    })
    await receive(pathOf(email.id), dsn(), "")
    const { data } = (await project.get(`/v1/emails/${email.id}`)).body
    expect(data).toMatchObject({
      status: "bounced",
      error: { code: "bounced", smtp_code: 550, enhanced_code: "5.1.1" },
    })
    expect(data.error.message).toContain("Recipient address rejected")
    const told = await eventsOf(email.id)
    expect(told.map(({ type }) => type)).toEqual(["email.queued", "email.sent", "email.bounced"])
    expect(told.at(-1)?.data).toMatchObject({ bounce_type: "Permanent", bounce_subtype: "NoEmail" })
    expect(told.at(-1)?.detail).toMatchObject({ mx: "mx2.elsewhere.test", smtp_code: 550 })
    const again = await project.post("/v1/emails", mail({ to: "to@elsewhere.test" }))
    expect(again.body.error).toMatchObject({
      code: "suppressed_recipient",
      details: { address: "to@elsewhere.test", reason: "bounce" },
    })
  })

  test("that names a policy, or deferred mail, suppresses nothing by itself", async () => {
    const { project } = await receiving()
    for (const status of ["5.7.1", "4.2.2"]) {
      const email = await sent(project, { to: "to@elsewhere.test" })
      await receive(pathOf(email.id), dsn({ status }), "")
      expect(await statusOf(email.id)).toBe("bounced")
    }
    expect((await project.get("/v1/suppressions")).body.data).toEqual([])
  })

  test("that is delayed is a soft bounce, once, and one that arrived a delivery", async () => {
    const { project } = await receiving()
    const email = await sent(project, { to: "to@elsewhere.test" })
    const delayed = dsn({ action: "delayed", status: "4.4.1" })
    await receive(pathOf(email.id), delayed, "")
    await receive(pathOf(email.id), delayed, "")
    expect(await statusOf(email.id)).toBe("sent")
    await receive(pathOf(email.id), dsn({ action: "delivered", status: "2.0.0" }), "")
    expect(await statusOf(email.id)).toBe("delivered")
    const told = await typesOf(email.id)
    expect(told.slice(2)).toEqual(["email.soft_bounced", "email.delivered"])
  })

  test("means one recipient of several by the address", async () => {
    const { project } = await receiving()
    const email = await sent(project, { to: "to@elsewhere.test", cc: ["copy@elsewhere.test"] })
    await receive(pathOf(email.id), dsn({ to: "Copy@Elsewhere.test" }), "")
    const { data } = (await project.get(`/v1/emails/${email.id}`)).body
    expect(data.recipients.map(({ status }: { status: string }) => status)).toEqual([
      "sent",
      "bounced",
    ])
    await receive(pathOf(email.id), dsn({ to: "stranger@elsewhere.test" }), "")
    expect(await statusOf(email.id)).toBe("sent")
  })

  test("waits for an email that is still on its way", async () => {
    const project = await service.project()
    const { body } = await project.post("/v1/emails", mail({ to: "to@elsewhere.test" }))
    const reply = await server.offer({ to: pathOf(body.id), raw: dsn(), from: "" })
    expect(await server.work()).toEqual([expect.stringContaining("not settled yet")])
    await deliverAll(service, (email) => ({ ...SENT, address: email }))
    expect(await server.work()).toEqual([])
    expect(await statusOf(body.id)).toBe("bounced")
    expect(await server.rowsOf(idsIn(reply))).toMatchObject([{ status: "processed" }])
  })

  test("changes nothing when it came to any other address, and the log says so", async () => {
    const { project, domain } = await receiving()
    const email = await sent(project, { to: "to@elsewhere.test" })
    const returned = `Message-ID: ${email.rfc_message_id}\nX-Svc-Email-Id: ${emailIdHeader(secrets, email.id)}\n`
    const row = await receive(`bounces@${domain}`, dsn({ returned }), "")
    expect(row).toMatchObject({ kind: "bounce", replied_to_message_id: email.id })
    expect(await statusOf(email.id)).toBe("sent")
    expect(await typesOf(row.id)).toEqual(["email.received"])
    const line = "a report without a valid MAC changes nothing"
    expect(logged().some((one) => one.includes(line))).toBe(true)
    const forged = `X-Svc-Email-Id: ${email.id}; mac=${"a".repeat(16)}\n`
    const other = await receive(`bounces@${domain}`, dsn({ returned: forged }), "")
    expect(other.replied_to_message_id).toBeNull()
  })
})

const arf = (returned: string) => `From: fbl@provider.test
Subject: complaint
MIME-Version: 1.0
Content-Type: multipart/report; report-type=feedback-report; boundary="f"

--f
Content-Type: text/plain

This is an abuse report.
--f
Content-Type: message/feedback-report

Feedback-Type: abuse
User-Agent: Provider/1.0
Version: 1

--f
Content-Type: message/rfc822

${returned}From: bell@example.test
Subject: Ding

Dong
--f--
`

describe("a complaint", () => {
  test.each<[string, (id: string) => string]>([
    ["the marked id", (id) => `X-Svc-Email-Id: ${emailIdHeader(secrets, id)}\n`],
    [
      "the return path",
      (id) => `Return-Path: <${localPartFor(secrets, "b", id)}@bounce.example.test>\n`,
    ],
  ])("that returns %s makes the email complained, once", async (_, returned) => {
    const { project } = await receiving()
    const email = await sent(project, { to: "to@elsewhere.test" })
    const row = await receive(`complaints@${HOST}`, arf(returned(email.id)))
    expect(row).toMatchObject({
      kind: "complaint",
      project_id: project.project_id,
      replied_to_message_id: email.id,
    })
    await receive(`abuse@${HOST}`, arf(returned(email.id)))
    expect(await statusOf(email.id)).toBe("complained")
    const told = (await eventsOf(email.id)).filter(({ type }) => type === "email.complained")
    expect(told).toMatchObject([{ data: { complaint_feedback_type: "abuse" } }])
    const { data } = (await project.get("/v1/suppressions")).body
    expect(data).toMatchObject([
      { address: "to@elsewhere.test", reason: "complaint", source_message_id: email.id },
    ])
  })

  test("without a right MAC, or about the email of another project, changes nothing", async () => {
    const { project } = await receiving()
    const { domain: theirs } = await receiving()
    const email = await sent(project, { to: "to@elsewhere.test" })
    await receive(`complaints@${HOST}`, arf(`X-Svc-Email-Id: ${email.id}; mac=${"a".repeat(16)}\n`))
    await receive(`complaints@${HOST}`, arf(`Message-ID: ${email.rfc_message_id}\n`))
    const marked = `X-Svc-Email-Id: ${emailIdHeader(secrets, email.id)}\n`
    const row = await receive(`a@${theirs}`, arf(marked))
    expect(row).toMatchObject({ kind: "complaint", replied_to_message_id: null })
    expect(await statusOf(email.id)).toBe("sent")
  })
})

describe("mail to the instance", () => {
  test("that reports on a domain goes to the project that verified it, with its data", async () => {
    const { project, domain } = await receiving()
    const xml = `<?xml version="1.0"?><feedback><report_metadata><org_name>Provider</org_name><report_id>1</report_id><date_range><begin>1795305600</begin><end>1795391999</end></date_range></report_metadata><policy_published><domain>${domain}</domain><p>none</p></policy_published><record><row><source_ip>192.0.2.1</source_ip><count>3</count><policy_evaluated><disposition>none</disposition><dkim>pass</dkim><spf>fail</spf></policy_evaluated></row><identifiers><header_from>${domain}</header_from></identifiers></record></feedback>`
    const body = Buffer.from(Bun.gzipSync(Buffer.from(xml))).toString("base64")
    const raw = `From: dmarc@provider.test\nSubject: Report Domain: ${domain}\nContent-Type: application/gzip; name="r.xml.gz"\nContent-Disposition: attachment; filename="r.xml.gz"\nContent-Transfer-Encoding: base64\n\n${body}\n`
    const row = await receive(`dmarc@${HOST}`, raw)
    expect(row).toMatchObject({ kind: "dmarc_report", project_id: project.project_id })
    expect(row.parsed?.report).toMatchObject({ domain, org_name: "Provider", messages: 3 })
    expect(await total(store.read, project.project_id, "inbound_emails")).toBe(1)
  })

  test("that a person wrote goes to the oldest project", async () => {
    const row = await receive(`postmaster@${HOST}`, NEW)
    expect(row.status).toBe("processed")
    expect(row.project_id).not.toBe("")
    const ours = and(eq(inboundEmails.id, row.id), eq(inboundEmails.project_id, row.project_id))
    expect(await store.read.select().from(inboundEmails).where(ours)).toHaveLength(1)
  })
})

test("an automatic answer is of its own kind, and a list too", async () => {
  const { project, domain } = await receiving()
  const email = await sent(project, { to: "to@elsewhere.test" })
  const vacation =
    "From: to@elsewhere.test\nAuto-Submitted: auto-replied\nSubject: Away\n\nI am away\n"
  const row = await receive(pathOf(email.id), vacation, "")
  expect(row).toMatchObject({
    kind: "auto_reply",
    auto_submitted: "auto-replied",
    replied_to_message_id: email.id,
  })
  expect(await statusOf(email.id)).toBe("sent")
  const list = await receive(
    `a@${domain}`,
    "List-Id: <news.elsewhere.test>\nSubject: News\n\nNews\n",
  )
  expect(list.kind).toBe("list")
})
