import { describe, expect, test } from "bun:test"
import { gzipSync } from "node:zlib"
import fc from "fast-check"
import { readDmarcReport } from "../../src/lib/dmarc-report"
import { classify } from "../../src/lib/mail-kind"
import { base64, multipart, part, seen } from "../fixtures/reports/mime"
import { zip } from "../fixtures/reports/zip"

const record = (ip: string, count: number, dkim: string, spf: string) => `
  <record>
    <row>
      <source_ip>${ip}</source_ip>
      <count>${count}</count>
      <policy_evaluated><disposition>none</disposition><dkim>${dkim}</dkim><spf>${spf}</spf></policy_evaluated>
    </row>
    <identifiers><envelope_from>mail.sender.test</envelope_from><header_from>sender.test</header_from></identifiers>
    <auth_results>
      <dkim><domain>sender.test</domain><selector>b1</selector><result>${dkim}</result></dkim>
      <spf><domain>mail.sender.test</domain><result>${spf}</result></spf>
    </auth_results>
  </record>`

const feedback = (records: string, namespace = "") => `<?xml version="1.0" encoding="UTF-8" ?>
<feedback${namespace}>
  <report_metadata>
    <org_name>Große Post &amp; Co</org_name>
    <email>noreply-dmarc@post.example</email>
    <report_id>1234567890</report_id>
    <date_range><begin>1795219200</begin><end>1795305599</end></date_range>
  </report_metadata>
  <policy_published>
    <domain>Sender.test</domain><adkim>r</adkim><aspf>s</aspf><p>quarantine</p><sp>reject</sp><pct>100</pct>
  </policy_published>${records}
</feedback>`

const RECORDS =
  record("192.0.2.20", 12, "pass", "pass") + record("198.51.100.66", 3, "fail", "fail")
const NAME = "post.example!sender.test!1795219200!1795305599"
const HEAD = `From: noreply-dmarc@post.example\nTo: dmarc@sender.test\nSubject: Report Domain: sender.test Submitter: post.example Report-ID: 1234567890`

const file = (type: string, name: string, content: Uint8Array | string) =>
  part(
    `Content-Type: ${type}; name="${name}"\nContent-Disposition: attachment; filename="${name}"\nContent-Transfer-Encoding: base64`,
    base64(content),
  )
const mailWith = (type: string, name: string, content: Uint8Array | string) =>
  multipart(HEAD, "multipart/mixed", [
    part("Content-Type: text/plain", "This is an aggregate report."),
    file(type, name, content),
  ])

describe("an aggregate report is read", () => {
  const xml = feedback(RECORDS)
  test.each([
    ["as gzip", mailWith("application/gzip", `${NAME}.xml.gz`, gzipSync(xml))],
    [
      "as zip",
      mailWith("application/zip", `${NAME}.zip`, zip([{ name: `${NAME}.xml`, content: xml }])),
    ],
    ["as XML", mailWith("text/xml", `${NAME}.xml`, xml)],
    [
      "under a type that says nothing",
      mailWith("application/octet-stream", `${NAME}.xml.gz`, gzipSync(xml)),
    ],
    [
      "as zip under another type",
      mailWith(
        "application/x-zip-compressed",
        `${NAME}.zip`,
        zip([{ name: `${NAME}.xml`, content: xml }]),
      ),
    ],
    [
      "with a namespace",
      mailWith(
        "application/gzip",
        "r.xml.gz",
        gzipSync(feedback(RECORDS, ' xmlns="urn:ietf:params:xml:ns:dmarc-2.0"')),
      ),
    ],
    [
      "as the only part of the mail",
      `${HEAD.replaceAll("\n", "\r\n")}\r\nMIME-Version: 1.0\r\nContent-Type: application/gzip; name="${NAME}.xml.gz"\r\nContent-Transfer-Encoding: base64\r\n\r\n${base64(gzipSync(xml))}`,
    ],
  ])("%s", (_, raw) => {
    const mail = seen(raw, "noreply-dmarc@post.example")
    expect(classify(mail).kind).toBe("dmarc_report")
    expect(readDmarcReport(mail)).toEqual({
      org_name: "Große Post & Co",
      email: "noreply-dmarc@post.example",
      report_id: "1234567890",
      begin: "2026-11-21T00:00:00.000Z",
      end: "2026-11-21T23:59:59.000Z",
      domain: "sender.test",
      policy: { p: "quarantine", sp: "reject", pct: 100, adkim: "r", aspf: "s" },
      messages: 15,
      aligned: 12,
      truncated: false,
      records: [
        {
          source_ip: "192.0.2.20",
          count: 12,
          disposition: "none",
          dkim: "pass",
          spf: "pass",
          header_from: "sender.test",
          envelope_from: "mail.sender.test",
          dkim_results: [{ domain: "sender.test", selector: "b1", result: "pass" }],
          spf_results: [{ domain: "mail.sender.test", result: "pass" }],
        },
        expect.objectContaining({
          source_ip: "198.51.100.66",
          count: 3,
          dkim: "fail",
          spf: "fail",
        }),
      ],
    })
  })
})

test("of a long report 1,000 records are kept, and all are counted", () => {
  const xml = feedback(record("2001:db8::1", 2, "pass", "fail").repeat(1_500))
  const report = readDmarcReport(seen(mailWith("application/gzip", "r.xml.gz", gzipSync(xml)), ""))
  expect(report).toMatchObject({ messages: 3_000, aligned: 3_000, truncated: true })
  expect(report?.records).toHaveLength(1_000)
})

describe("no report is", () => {
  const entities = `<!DOCTYPE feedback [<!ENTITY a "${"x".repeat(100)}">]>`
  test.each([
    ["a gzip bomb", mailWith("application/gzip", "r.xml.gz", gzipSync(Buffer.alloc(100_000_000)))],
    [
      "a zip bomb",
      mailWith(
        "application/zip",
        "r.zip",
        zip([{ name: "r.xml", content: Buffer.alloc(100_000_000) }]),
      ),
    ],
    [
      "an archive with a claim of 4 GB",
      mailWith(
        "application/zip",
        "r.zip",
        zip([{ name: "r.xml", content: feedback(RECORDS), claimed: 0xffffffff }]),
      ),
    ],
    [
      "XML with entities",
      mailWith(
        "text/xml",
        "r.xml",
        feedback(RECORDS).replace("<feedback>", `${entities}<feedback>`),
      ),
    ],
    [
      "XML of another kind",
      mailWith("text/xml", "invoice.xml", "<invoice><total>3</total></invoice>"),
    ],
    ["a report without a domain", mailWith("text/xml", "r.xml", "<feedback><record/></feedback>")],
    ["half a report", mailWith("text/xml", "r.xml", feedback(RECORDS).slice(0, 900))],
    [
      "a picture in an archive",
      mailWith("application/zip", "r.zip", zip([{ name: "a.png", content: "x" }])),
    ],
  ])("%s", (_, raw) => {
    const mail = seen(raw, "noreply-dmarc@post.example")
    expect(readDmarcReport(mail)).toBeUndefined()
    expect(classify(mail).kind).toBe("other")
  })
})

test("whatever the XML says, reading it never throws", () => {
  const xml = feedback(RECORDS)
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.nat(xml.length), fc.string({ maxLength: 8 }))), (changes) => {
      let spoilt = xml
      for (const [at, text] of changes) spoilt = spoilt.slice(0, at) + text + spoilt.slice(at + 4)
      const content = Buffer.from(spoilt)
      const found = {
        content_type: "text/xml",
        params: {},
        filename: "r.xml",
        headers: {},
        content,
      }
      readDmarcReport({ headers: {}, text: null, html: null, parts: [found], envelope_from: "" })
    }),
    { seed: 13, numRuns: 1_000 },
  )
})
