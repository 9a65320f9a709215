import { expect, test } from "bun:test"
import {
  explainHeaders,
  type MailHeaders,
  senderFacts,
  signatureTags,
} from "../../src/console/mail/explain-headers"

const SIGNED: MailHeaders = {
  from: "Acme <hello@acme.test>",
  "return-path": "<b+1@bounce.acme.test>",
  "message-id": "<1@acme.test>",
  references: "<0@acme.test> <0.5@acme.test>",
  "in-reply-to": "<0.5@acme.test>",
  "dkim-signature": "v=1; a=rsa-sha256; d=acme.test; s=svc1;\r\n h=from:to:subject; bh=x=; b=a b",
}

const factsOf = (headers: MailHeaders) =>
  Object.fromEntries(senderFacts(headers).map(({ name, text, tone }) => [name, { text, tone }]))

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
  expect(SPF).toMatchObject({ tone: "good" })
  expect(Thread?.text).toContain("began with <0@acme.test>")
})

test("a domain that only ends with the same letters is another one", () => {
  const others = { ...SIGNED, "dkim-signature": "d=evilacme.test; s=x; a=y; h=from" }
  expect(factsOf(others).DKIM).toMatchObject({ tone: "warn" })
  expect(factsOf({ ...SIGNED, "return-path": "<x@notacme.test>" }).SPF?.tone).toBe("warn")
})

test("what is missing is told", () => {
  const bare = factsOf({ from: "hello@acme.test" })
  expect([bare.DKIM?.tone, bare["Message-ID"]?.tone]).toEqual(["warn", "warn"])
  expect(bare.Thread?.text).toBe("This mail begins a thread.")
  expect(senderFacts({})).toHaveLength(4)
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
