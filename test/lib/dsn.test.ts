import { describe, expect, test } from "bun:test"
import { readDsn } from "../../src/lib/dsn"
import { STANDARD_DSNS } from "../fixtures/reports/dsn-standard"
import { TEXT_DSNS } from "../fixtures/reports/dsn-text"
import { multipart, part, plain, seen } from "../fixtures/reports/mime"
import fc from "../harness/properties"

describe("a report of", () => {
  test.each([...STANDARD_DSNS, ...TEXT_DSNS].map((one) => [one.name, one] as const))(
    "%s",
    (_, { raw, envelope_from, id, recipients }) => {
      const dsn = readDsn(seen(raw, envelope_from))
      const read = dsn?.recipients.map(({ email, final_email, action, status }) => ({
        email,
        action,
        status,
        ...(final_email !== null && { final: final_email }),
      }))
      expect(read).toEqual(
        recipients.map(({ email, action, status, final }) => ({
          email,
          action,
          status,
          ...(final !== undefined && { final }),
        })),
      )
      for (const [at, { says }] of recipients.entries()) {
        const one = dsn?.recipients[at]
        if (says === null) expect(one?.diagnostic).toBeNull()
        else expect(one?.diagnostic).toContain(says)
      }
      expect(dsn?.original_message_id ?? null).toBe(id)
    },
  )
})

test("a person who quotes a bounce reports nothing", () => {
  const [quoted] = TEXT_DSNS
  const text = quoted?.raw.slice(quoted.raw.indexOf("\r\n\r\n") + 4) ?? ""
  const raw = plain(
    "From: Ann <ann@example.com>\nSubject: Re: failure notice",
    `What is this?\n${text}`,
  )
  expect(readDsn(seen(raw, "ann@example.com"))).toBeUndefined()
})

test("a vacation notice with the null sender reports nothing", () => {
  const head = "From: ann@example.com\nSubject: Away\nAuto-Submitted: auto-replied"
  const raw = plain(
    head,
    "Your mail could not be delivered to me.\n\nbob@example.com\n\nwill help.",
  )
  expect(readDsn(seen(raw, ""))).toBeUndefined()
})

test("a report names 100 recipients at most", () => {
  const group = (at: number) => `Final-Recipient: rfc822; a${at}@example.com\nAction: failed\n`
  const status = Array.from({ length: 5_000 }, (_, at) => group(at)).join("\n")
  const raw = multipart("From: MAILER-DAEMON@x.test", "multipart/report", [
    part("Content-Type: message/delivery-status", status),
  ])
  expect(readDsn(seen(raw, ""))?.recipients).toHaveLength(100)
})

describe("a report keeps what it says of the recipient", () => {
  const STATUS = part(
    "Content-Type: message/delivery-status",
    "Reporting-MTA: dns; x\n\nFinal-Recipient: rfc822; ann@b.test\nAction: failed\nStatus: 5.1.1",
  )
  const HEAD = "From: MAILER-DAEMON@x.test\nSubject: Undelivered"
  const report = (...rest: string[]) =>
    multipart(HEAD, "multipart/report; report-type=delivery-status", [STATUS, ...rest])
  const nested = (depth: number) => {
    const open = (at: number) => `Content-Type: multipart/mixed; boundary="n${at}"\r\n\r\n--n${at}`
    return Array.from({ length: depth }, (_, at) => open(at)).join("\r\n")
  }

  test.each([
    ["without the end of its last part", report().replace("--=_boundary--", "")],
    ["whose part after it has no boundary", report(part("Content-Type: multipart/mixed", "x"))],
    ["whose original is 60 levels deep", report(nested(60))],
    ["whose original has 2,000 parts", report(`${nested(1)}${"\r\n\r\nx\r\n--n0".repeat(2_000)}`)],
    ["whose parts are marked off with another boundary", report().replaceAll("--=_b", "--=_c")],
    [
      "whose text before it names no boundary",
      report().replace(
        "--=_boundary",
        "--=_boundary\r\nContent-Type: multipart/alternative\r\n\r\nx\r\n--=_boundary",
      ),
    ],
    [
      "whose delimiters are gone",
      report().replace(/^--=_boundary.*\r\n(?:Content-Type.*\r\n)?/gm, ""),
    ],
  ])("%s", (_, raw) => {
    const [one] = readDsn(seen(raw, ""))?.recipients ?? []
    expect(one).toMatchObject({ email: "ann@b.test", action: "failed", status: "5.1.1" })
  })
})

test("whatever stands in a report, reading it ends and never throws", () => {
  const token = fc.constantFrom(
    ...["Final-Recipient: ", "Action: ", "Status: 5.1.1", "rfc822; ", "a@b.test", "<", ">", ":"],
    ...[
      "\n",
      "\n\n",
      " ",
      "550 5.1.1 ",
      "--- Below this line",
      "could not be delivered",
      "utf-8; ",
    ],
    ...["\\x{D800}", "\\x{ffffff}", "=?utf-8?q?=FF?=", "\0", "\ud800", "host ", "..."],
  )
  const body = fc.oneof(
    fc.array(token, { maxLength: 80 }).map((all) => all.join("")),
    fc.string(),
  )
  fc.assert(
    fc.property(body, body, (status, text) => {
      const part = {
        content_type: "message/delivery-status",
        params: {},
        filename: null,
        headers: {},
        content: Buffer.from(status),
      }
      const mail = { headers: {}, text, html: null, parts: [part], envelope_from: "" }
      for (const one of readDsn(mail)?.recipients ?? []) {
        expect(one.email.isWellFormed() && !one.email.includes("\0")).toBeTrue()
        expect(one.diagnostic?.includes("\0") ?? false).toBeFalse()
      }
    }),
    { seed: 13, numRuns: 2_000 },
  )
})

test("of a long report the beginning counts, and it stays readable where the cut is", () => {
  const name = "ü".repeat(200_000)
  for (const filler of ["", "x"]) {
    const status = `Reporting-MTA: dns; x\n\nFinal-Recipient: utf-8; jörg@b.test\nAction: failed\n\n${filler}${name}`
    const raw = multipart("From: MAILER-DAEMON@x.test", "multipart/report", [
      part("Content-Type: message/global-delivery-status", status),
    ])
    expect(readDsn(seen(raw, ""))?.recipients[0]?.email).toBe("jörg@b.test")
  }
})

test("a postmaster who answers as a person reports nothing", () => {
  const head = "From: Postmaster <postmaster@example.com>\nSubject: Re: Your question"
  const text =
    "Your mail was not delivered because it was blocked.\n\nann@example.com can get it now."
  expect(readDsn(seen(plain(head, text), "postmaster@example.com"))).toBeUndefined()
})

test("a forwarder may have replaced the null sender", () => {
  const [bounce] = TEXT_DSNS
  const dsn = readDsn(seen(bounce?.raw ?? "", "SRS0=x=y=mx.example.com=@forwarder.example"))
  expect(dsn?.recipients).toHaveLength(1)
})
