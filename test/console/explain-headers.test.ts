import { expect, test } from "bun:test"
import {
  explainHeaders,
  type MailHeaders,
  senderFacts,
  signatureTags,
} from "../../src/console/mail/explain-headers"
import { organizationsOf } from "../../src/mailbox/routes"

const SIGNED: MailHeaders = {
  from: "Acme <hello@acme.test>",
  "return-path": "<b+1@bounce.acme.test>",
  "message-id": "<1@acme.test>",
  references: "<0@acme.test> <0.5@acme.test>",
  "in-reply-to": "<0.5@acme.test>",
  "dkim-signature": "v=1; a=rsa-sha256; d=acme.test; s=svc1;\r\n h=from:to:subject; bh=x=; b=a b",
}

/** As the answer of a mail gives it. */
const mailOf = (headers: MailHeaders, envelope_from = "", email_id: string | null = "1") => ({
  headers,
  email_id,
  envelope_from,
  organizations: organizationsOf(headers, envelope_from),
})

const factsOf = (headers: MailHeaders, envelope_from?: string) =>
  Object.fromEntries(
    senderFacts(mailOf(headers, envelope_from)).map(({ name, text, tone }) => [
      name,
      { text, tone },
    ]),
  )

test("a signature is read by its tags, whatever the folding", () => {
  expect(signatureTags("v=1; d=acme.test;\r\n\ts=svc1; bh=ab=; b=a\r\n b=")).toEqual({
    v: "1",
    d: "acme.test",
    s: "svc1",
    bh: "ab=",
    b: "ab=",
  })
})

test("a mail that its own domain signed is well", () => {
  const { DKIM, SPF, Thread } = factsOf(SIGNED)
  expect(DKIM?.tone).toBe("good")
  expect(DKIM?.text).toContain("svc1._domainkey.acme.test")
  expect(DKIM?.text).toContain("3 header fields")
  expect(SPF).toMatchObject({ tone: "plain" })
  expect(SPF?.text).toContain("not looked up here")
  expect(Thread?.text).toContain("began with <0@acme.test>")
})

test("a signature that nobody has verified is no good one", () => {
  const [DKIM] = senderFacts(mailOf(SIGNED, "", null))
  expect(DKIM).toMatchObject({ name: "DKIM", tone: "plain" })
})

test("a domain that only ends with the same letters is another one", () => {
  const others = { ...SIGNED, "dkim-signature": "d=evilacme.test; s=x; a=y; h=from" }
  expect(factsOf(others).DKIM).toMatchObject({ tone: "warn" })
  expect(factsOf({ ...SIGNED, "return-path": "<x@notacme.test>" }).SPF?.tone).toBe("warn")
})

const signedBy = (domain: string, from: string): MailHeaders => ({
  from,
  "message-id": `<1@${domain}>`,
  "return-path": `<b@${domain}>`,
  "dkim-signature": `v=1; d=${domain}; s=x; a=y; h=from`,
})

test.each([
  ["mail.example.com", "a@news.example.com", true],
  ["EXAMPLE.com", "a@Example.com", true],
  ["mail.example.co.uk", "a@example.co.uk", true],
  ["co.uk", "a@example.co.uk", false],
  ["com", "a@example.com", false],
  ["one.github.io", "a@two.github.io", false],
  ["example.com", '"ann@evil.test" <a@example.com>', true],
  ["evil.test", '"ann@evil.test" <a@example.com>', false],
  ["evil.test", "ann@evil.test <a@example.com>", false],
  ["example.com", '"a <b@evil.test>" <a@example.com>', true],
  ["example.com", "a@example.com (ann@evil.test)", true],
  ["example.com", "(ann@evil.test) a@example.com", true],
])("a domain %s belongs to the author %s: %p", (domain, from, is_aligned) => {
  const { DKIM, SPF, "Message-ID": id } = factsOf(signedBy(domain, from))
  expect(DKIM?.text.includes("not the domain of From")).toBe(!is_aligned)
  expect([DKIM?.tone, SPF?.tone]).toEqual(is_aligned ? ["good", "plain"] : ["warn", "warn"])
  expect(id?.text.includes("has the domain of From")).toBe(is_aligned)
})

test("without Return-Path the sender of the envelope counts", () => {
  const of = (envelope_from: string) => factsOf({ from: "a@news.example.com" }, envelope_from).SPF
  expect(of("b+1@bounce.example.com")).toMatchObject({ tone: "plain" })
  expect(of("b+1@bounce.example.com")?.text).toContain("SPF record of bounce.example.com")
  expect(of("b@relay.test")).toMatchObject({ tone: "warn" })
  expect(of("")).toMatchObject({ tone: "plain" })
  const given = { from: "a@example.com", "return-path": "<>" }
  expect(factsOf(given, "b@example.com").SPF?.text).toContain("The envelope has no sender")
})

test("the field with which Belfry finds an email again has a note", () => {
  expect(explainHeaders({ "x-svc-email-id": "1" })[0]?.note).toContain("Belfry")
})

test("what is missing is told", () => {
  const bare = factsOf({ from: "hello@acme.test" })
  expect([bare.DKIM?.tone, bare["Message-ID"]?.tone]).toEqual(["warn", "warn"])
  expect(bare.Thread?.text).toBe("This mail begins a thread.")
  expect(senderFacts(mailOf({}))).toHaveLength(4)
})

test("each field is told, also one that comes twice or that nobody knows", () => {
  const notes = explainHeaders({ received: ["a", "b"], "x-own": "1", subject: "<b>Hi</b>" })
  expect(notes.map(({ name, value }) => [name, value])).toEqual([
    ["received", "a"],
    ["received", "b"],
    ["x-own", "1"],
    ["subject", "<b>Hi</b>"],
  ])
  expect(explainHeaders({ constructor: "x" })[0]?.note).toBe("")
  expect(notes.map(({ note }) => note === "")).toEqual([false, false, true, false])
})
