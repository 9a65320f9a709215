import { afterAll, describe, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { type Blobs, openBlobs } from "../../src/core/blobs"
import type { Resolver } from "../../src/core/dns"
import { localPartFor } from "../../src/core/mail-token"
import { domains } from "../../src/domains/tables"
import { inboundProcess } from "../../src/inbound/arrived-mail"
import { rawMail } from "../../src/inbound/raw-mail"
import { type InboundRow, inboundEmails, inboundFiles } from "../../src/inbound/tables"
import { jobs } from "../../src/jobs/tables"
import { addReceivingDomain } from "../harness/inbound-rows"
import { HOST, idsIn, inboundServer } from "../harness/inbound-server"
import { mail } from "../harness/mail"
import { quietLog } from "../harness/quiet"
import { sharedService } from "../harness/shared-service"
import { SmtpDialogue } from "../harness/smtp-dialogue"

quietLog()

const service = await sharedService()
const { store, parts } = service
const server = await inboundServer(service)
afterAll(() => server[Symbol.asyncDispose]())

const RAW = "From: Ann <ann@elsewhere.test>\nSubject: Hello\n\nText\n"

/** More than a row takes, so it becomes a file. */
const LARGE = `${RAW}${"0123456789abcde\n".repeat(4_200)}`

const rawOf = async (row: InboundRow | undefined) => {
  const stored = { read: store.read, inbound_blobs: parts.inbound_blobs }
  return Buffer.from((row && (await rawMail(stored, row))) ?? []).toString()
}

const filesOf = (row: InboundRow | undefined) =>
  store.read
    .select()
    .from(inboundFiles)
    .where(eq(inboundFiles.inbound_id, row?.id ?? ""))

const jobsOf = async (id: string) => {
  const rows = await store.read.select().from(jobs).where(eq(jobs.name, inboundProcess.name))
  return rows.filter(({ payload }) => (payload as { ids: string[] }).ids.includes(id))
}

test("a long line, many Received and a bare LF of other servers are taken", async () => {
  const project = await service.project()
  const to = `x@${await addReceivingDomain(store, project)}`
  const head = `From: a..b@elsewhere.test\r\nTo: ${to}\r\nMIME-Version: 1.0\r\n`
  const hop = "Received: from h1.example by g1.example; Sat, 28 Nov 2026 08:00:00 +0000\r\n"
  const mails: [raw: string, stored: string, text: string | null][] = [
    [`${head}\r\n${"x".repeat(9000)}\r\n`, `\r\n${"x".repeat(9000)}\r\n`, "x".repeat(9000)],
    [`${hop.repeat(21)}${head}\r\nhi\r\n`, "\r\n\r\nhi\r\n", "hi"],
    [`${head}\r\nline1\nline2\r\n`, "\r\n\r\nline1\r\nline2\r\n", "line1\nline2"],
    [
      `${head}\nline1\n.\nline2\n.\r\nx\r\n`,
      "line1\r\n.\r\nline2\r\n.\r\nx\r\n",
      "line1\n.\nline2\n.\nx",
    ],
  ]
  for (const [raw, stored, text] of mails) {
    using dialogue = await SmtpDialogue.open(server.server.port)
    const envelope = ["EHLO x.test", "MAIL FROM: a..b@elsewhere.test", `RCPT TO: ${to}`, "DATA"]
    for (const line of envelope) await dialogue.say(line)
    dialogue.write(`${raw}.\r\n`)
    const ids = idsIn((await dialogue.reply()).text.slice(4))
    await server.work()
    const { body } = await project.get(`/v1/inbound-emails/${ids[0]}`)
    expect(body.data).toMatchObject({
      from: { email: "a..b@elsewhere.test" },
      envelope: { from: "a..b@elsewhere.test" },
      parse_error: false,
    })
    expect(body.data.text_body.replaceAll("\r\n", "\n").trim()).toBe(text)
    const [row] = await server.rowsOf(ids)
    expect(await rawOf(row)).toEndWith(stored)
  }
  const listed = await project.get("/v1/inbound-emails?from=a..b@elsewhere.test")
  expect(listed.body.data).toHaveLength(mails.length)
})

test("a mail is on disk with a row for each recipient and one job before the 250", async () => {
  const [one, two] = [await service.project(), await service.project()]
  const first = await addReceivingDomain(store, one)
  const second = await addReceivingDomain(store, two)
  const to = [`Support+Tag@${first}`, `info@${second}`, `second@${first}`]
  const reply = await server.offer({ to, raw: RAW, helo: "mx1.elsewhere.test" })
  expect(reply).toMatch(/^2\.0\.0 Ok: queued as [0-9a-f-]{36} [0-9a-f-]{36} [0-9a-f-]{36}$/)

  const rows = await server.rowsOf(idsIn(reply))
  expect(rows).toMatchObject([
    { project_id: one.project_id, to_email: `support+tag@${first}`, domain: first },
    { project_id: two.project_id, to_email: `info@${second}`, domain: second },
    { project_id: one.project_id, to_email: `second@${first}`, domain: first },
  ])
  // A project does not learn which addresses of others got the mail.
  const seen = rows.map(({ session }) => session.to)
  expect(seen).toEqual([[to[0] ?? "", to[2] ?? ""], [to[1] ?? ""], [to[0] ?? "", to[2] ?? ""]])
  const [row] = rows
  expect(row).toMatchObject({
    status: "received",
    parsed: null,
    session: {
      address: "127.0.0.1",
      helo: "mx1.elsewhere.test",
      mail_from: "ann@elsewhere.test",
    },
  })
  const raw = await rawOf(row)
  expect(raw).toMatch(
    /^Return-Path: <ann@elsewhere\.test>\r\nReceived: from mx1\.elsewhere\.test \(\[127\.0\.0\.1\]\)\r\n\tby mx\.belfry\.test with ESMTP\r\n\tid \S+; .* \+0000\r\nFrom: Ann/,
  )
  expect(raw.endsWith("\r\n\r\nText\r\n")).toBe(true)
  expect(raw.length).toBe(row?.size ?? 0)
  for (const other of rows) expect(await rawOf(other)).toBe(raw)
  expect(await jobsOf(row?.id ?? "")).toMatchObject([
    { payload: { ids: rows.map(({ id }) => id) } },
  ])
})

test("a mail that is too large for its rows is one file, which all of its rows name", async () => {
  const domain = await addReceivingDomain(store, await service.project())
  const reply = await server.offer({ to: [`a@${domain}`, `b@${domain}`], raw: LARGE })
  const rows = await server.rowsOf(idsIn(reply))
  expect(new Set(rows.map(({ raw_sha256 }) => raw_sha256)).size).toBe(1)
  for (const row of rows) {
    expect(await filesOf(row)).toMatchObject([{ sha256: row.raw_sha256 }])
    expect(await rawOf(row)).toEndWith(LARGE.replaceAll("\n", "\r\n"))
  }
})

test("a mail to many is one file, where its rows together would be too large", async () => {
  const domain = await addReceivingDomain(store, await service.project())
  const raw = `${RAW}${"0123456789abcde\n".repeat(1_000)}`
  const to = Array.from({ length: 60 }, (_, at) => `a${at}@${domain}`)
  const [few] = await server.rowsOf(idsIn(await server.offer({ to: to.slice(0, 2), raw })))
  expect([few?.raw_sha256, await filesOf(few)]).toEqual(["", []])
  const [many] = await server.rowsOf(idsIn(await server.offer({ to, raw })))
  expect(await filesOf(many)).toMatchObject([{ sha256: many?.raw_sha256 }])
  expect((await rawOf(many)).slice(-400)).toBe((await rawOf(few)).slice(-400))
})

test("one address that is named twice has one row", async () => {
  const domain = await addReceivingDomain(store, await service.project())
  const reply = await server.offer({ to: [`a@${domain}`, `A@${domain.toUpperCase()}`], raw: RAW })
  expect(idsIn(reply)).toHaveLength(1)
})

describe("a recipient is answered at RCPT:", () => {
  const rcpt = async (address: string, from = "<>") => {
    using dialogue = await SmtpDialogue.open(server.server.port)
    await dialogue.talk("EHLO elsewhere.test", `MAIL FROM:${from}`)
    return await dialogue.say(`RCPT TO:<${address}>`)
  }

  test.each([
    "victim@elsewhere.test",
    "victim%elsewhere.test@DOMAIN",
    "elsewhere.test!victim@DOMAIN",
    "@DOMAIN:victim@elsewhere.test",
    '"victim@elsewhere.test"@DOMAIN',
    '"any one@elsewhere.test"@DOMAIN',
    "victim@elsewhere.test@DOMAIN",
    "victim@[127.0.0.1]",
    "victim@sub.DOMAIN",
    "victim",
  ])("%p is 550 5.7.1, also from the null sender", async (form) => {
    const domain = await addReceivingDomain(store, await service.project())
    for (const from of ["<>", "<ann@elsewhere.test>"]) {
      const answer = await rcpt(form.replaceAll("DOMAIN", domain), from)
      expect(answer).toMatch(/^550 5\.7\.1 forbidden: .* \(req_[0-9a-f]{32}\)$/)
    }
  })

  test("an address that no route takes is 550 5.1.1, another one of the instance 550 5.7.1, and what is taken 250", async () => {
    const project = await service.project()
    const domain = await addReceivingDomain(store, project)
    expect(await rcpt(`any@${domain}`)).toMatch(/^250 /)
    const { body } = await project.post("/v1/emails", mail())
    expect(await rcpt(`${localPartFor(parts.secrets, "b", body.id)}@${HOST}`)).toMatch(/^250 /)
    expect(await rcpt(`postmaster@${HOST}`)).toMatch(/^250 /)
    expect(await rcpt(`nobody@${HOST}`)).toMatch(/^550 5\.7\.1 forbidden: /)
    const strict = await service.project()
    const routed = await addReceivingDomain(store, strict)
    const body_of_mode = { inbound: { mode: "routes" } }
    await strict.call("PATCH", "/v1/settings", { body: body_of_mode })
    expect(await rcpt(`nobody@${routed}`)).toMatch(
      /^550 5\.1\.1 not_found: .* \(req_[0-9a-f]{32}\)$/,
    )
  })
})

test("a domain that stops between RCPT and DATA gets no mail any more", async () => {
  const project = await service.project()
  const gone = await addReceivingDomain(store, project)
  const stays = await addReceivingDomain(store, project)
  using dialogue = await SmtpDialogue.open(server.server.port)
  await dialogue.talk("EHLO elsewhere.test", "MAIL FROM:<ann@elsewhere.test>")
  await dialogue.talk(`RCPT TO:<a@${gone}>`, `RCPT TO:<a@${stays}>`, "DATA")
  const ours = eq(domains.domain, gone)
  await store.tx((tx) => tx.update(domains).set({ receiving: false }).where(ours))
  if (service.database_url !== null) await Bun.sleep(1100) // what another node may believe
  const reply = await dialogue.say(`${RAW.replaceAll("\n", "\r\n")}.`)
  const rows = await server.rowsOf(idsIn(reply.slice("250 ".length)))
  expect(rows.map(({ domain }) => domain)).toEqual([stays])
})

describe("a storage that does not write", () => {
  const broken = (reason: string): Blobs => ({
    ...openBlobs(`${service.folder}/broken`),
    put: async () => {
      throw Object.assign(new Error(reason), { code: reason })
    },
  })

  test.each(["ENOSPC", "EDQUOT", "EIO"])(
    "is 452 4.3.1 (%s), and the session goes on",
    async (code) => {
      const domain = await addReceivingDomain(store, await service.project())
      await using full = await inboundServer(service, { inbound_blobs: broken(code) })
      const before = await store.read.select().from(inboundEmails)
      const reply = await full.offer({ to: `a@${domain}`, raw: LARGE })
      expect(reply).toMatch(/^4\.3\.1 service_unavailable: .* \(req_[0-9a-f]{32}\)$/)
      expect(await store.read.select().from(inboundEmails)).toHaveLength(before.length)
    },
  )

  test("that heals takes the mail at the next try", async () => {
    const domain = await addReceivingDomain(store, await service.project())
    const blobs = openBlobs(`${service.folder}/healing`)
    let is_full = true
    const healing: Blobs = {
      ...blobs,
      put: async (...given) => {
        if (is_full) throw Object.assign(new Error("full"), { code: "ENOSPC" })
        return blobs.put(...given)
      },
    }
    await using it = await inboundServer(service, { inbound_blobs: healing })
    expect(await it.offer({ to: `a@${domain}`, raw: LARGE })).toMatch(/^4\.3\.1/)
    is_full = false
    expect(idsIn(await it.offer({ to: `a@${domain}`, raw: LARGE }))).toHaveLength(1)
  })
})

describe("with inbound.enforce_dmarc", () => {
  /** A name server that knows one DMARC policy, and no other record. */
  const policyOf = (domain: string, policy: string) => {
    const none = async () => []
    const txt = async (name: string) =>
      name === `_dmarc.${domain}` ? [[`v=DMARC1; p=${policy}`]] : []
    return { txt, mx: none, ptr: none, a: none, aaaa: none } as unknown as Resolver
  }
  const offered = async (policy: string, enforces: boolean) => {
    const domain = await addReceivingDomain(store, await service.project())
    const dns = policyOf("elsewhere.test", policy)
    const verdicts = { workers: parts.workers, dns, host: HOST }
    await using it = await inboundServer(service, { verdicts, enforces_dmarc: () => enforces })
    const reply = await it.offer({ to: `a@${domain}`, raw: RAW })
    return { reply, rows: reply.startsWith("2.") ? await it.rowsOf(idsIn(reply)) : [] }
  }

  test("forged mail of a domain that wants it refused is 550 5.7.1 behind DATA", async () => {
    const { reply } = await offered("reject", true)
    expect(reply).toMatch(/^5\.7\.1 forbidden: .*elsewhere\.test.* \(req_[0-9a-f]{32}\)$/)
  })

  test("other mail is taken, with the verdicts in its row already", async () => {
    const { rows } = await offered("none", true)
    expect(rows).toMatchObject([{ status: "received", dmarc_verdict: "fail", verified: false }])
    expect((await offered("reject", false)).rows).toMatchObject([{ dmarc_verdict: null }])
  })
})

test("many mails at once are each whole", async () => {
  const domain = await addReceivingDomain(store, await service.project())
  const numbers = Array.from({ length: 40 }, (_, at) => at)
  const replies = await Promise.all(
    numbers.map((at) => server.offer({ to: `a${at}@${domain}`, raw: `Subject: ${at}\n\n${at}\n` })),
  )
  for (const [at, reply] of replies.entries()) {
    const [row] = await server.rowsOf(idsIn(reply))
    expect(row?.to_email).toBe(`a${at}@${domain}`)
    expect(await rawOf(row)).toEndWith(`Subject: ${at}\r\n\r\n${at}\r\n`)
  }
})
