import { describe, expect, test } from "bun:test"
import { gzipSync } from "node:zlib"
import { classify } from "../../src/lib/auto-reply"
import { childOf, childrenOf, readDmarcReport, readXml } from "../../src/lib/dmarc-report"
import {
  DMARC_HEAD,
  DMARC_NAME,
  dmarcMail,
  feedback,
  RECORDS,
  record,
} from "../fixtures/reports/aggregates"
import { base64, seen } from "../fixtures/reports/mime"
import { zip } from "../fixtures/reports/zip"
import fc from "../harness/properties"

describe("an aggregate report is read", () => {
  const xml = feedback(RECORDS)
  test.each([
    ["as gzip", dmarcMail("application/gzip", `${DMARC_NAME}.xml.gz`, gzipSync(xml))],
    [
      "as zip",
      dmarcMail(
        "application/zip",
        `${DMARC_NAME}.zip`,
        zip([{ name: `${DMARC_NAME}.xml`, content: xml }]),
      ),
    ],
    ["as XML", dmarcMail("text/xml", `${DMARC_NAME}.xml`, xml)],
    [
      "under a type that says nothing",
      dmarcMail("application/octet-stream", `${DMARC_NAME}.xml.gz`, gzipSync(xml)),
    ],
    [
      "as zip under another type",
      dmarcMail(
        "application/x-zip-compressed",
        `${DMARC_NAME}.zip`,
        zip([{ name: `${DMARC_NAME}.xml`, content: xml }]),
      ),
    ],
    ["without a name", dmarcMail("application/octet-stream", "", gzipSync(xml))],
    ["packed twice", dmarcMail("application/gzip", "r.gz", gzipSync(gzipSync(xml)))],
    [
      "as zip of a file without an ending",
      dmarcMail("application/zip", "r.zip", zip([{ name: "report", content: xml }])),
    ],
    [
      "in UTF-16",
      dmarcMail("application/gzip", "r.gz", gzipSync(Buffer.from(`\ufeff${xml}`, "utf16le"))),
    ],
    [
      "with a schema that never ends",
      dmarcMail(
        "application/gzip",
        "i.xml.gz",
        gzipSync(
          xml.replace(
            "<feedback>",
            '<feedback><xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" targetNamespace="http://dmarc.org/dmarc-xml/0.1">',
          ),
        ),
      ),
    ],
    [
      "with a namespace",
      dmarcMail(
        "application/gzip",
        "r.xml.gz",
        gzipSync(feedback(RECORDS, ' xmlns="urn:ietf:params:xml:ns:dmarc-2.0"')),
      ),
    ],
    [
      "as the only part of the mail",
      `${DMARC_HEAD.replaceAll("\n", "\r\n")}\r\nMIME-Version: 1.0\r\nContent-Type: application/gzip; name="${DMARC_NAME}.xml.gz"\r\nContent-Transfer-Encoding: base64\r\n\r\n${base64(gzipSync(xml))}`,
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

test("of a long report the records of the most messages are kept, and all are counted", () => {
  const large = record("2001:db8::2", 9, "fail", "fail")
  const xml = feedback(record("2001:db8::1", 2, "pass", "fail").repeat(1_500) + large)
  const report = readDmarcReport(seen(dmarcMail("application/gzip", "r.xml.gz", gzipSync(xml)), ""))
  expect(report).toMatchObject({ messages: 3_009, aligned: 3_000, truncated: true })
  expect(report?.records).toHaveLength(200)
  expect(report?.records[0]).toMatchObject({ source_ip: "2001:db8::2", count: 9 })
})

describe("no report is", () => {
  const entities = `<!DOCTYPE feedback [<!ENTITY a "${"x".repeat(100)}">]>`
  test.each([
    ["a gzip bomb", dmarcMail("application/gzip", "r.xml.gz", gzipSync(Buffer.alloc(100_000_000)))],
    [
      "a zip bomb",
      dmarcMail(
        "application/zip",
        "r.zip",
        zip([{ name: "r.xml", content: Buffer.alloc(100_000_000) }]),
      ),
    ],
    [
      "an archive with a claim of 4 GB",
      dmarcMail(
        "application/zip",
        "r.zip",
        zip([{ name: "r.xml", content: feedback(RECORDS), claimed: 0xffffffff }]),
      ),
    ],
    [
      "XML with entities",
      dmarcMail(
        "text/xml",
        "r.xml",
        feedback(RECORDS).replace("<feedback>", `${entities}<feedback>`),
      ),
    ],
    [
      "XML of another kind",
      dmarcMail("text/xml", "invoice.xml", "<invoice><total>3</total></invoice>"),
    ],
    ["a report without a domain", dmarcMail("text/xml", "r.xml", "<feedback><record/></feedback>")],
    ["half a report", dmarcMail("text/xml", "r.xml", feedback(RECORDS).slice(0, 900))],
    [
      "a picture in an archive",
      dmarcMail("application/zip", "r.zip", zip([{ name: "a.png", content: "x" }])),
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

const LIMITS = { elements: 1_000, depth: 10 }
const read = (text: string) => readXml(text, LIMITS)

test("elements, text, CDATA and references are read", () => {
  const root = read(`<?xml version="1.0"?>
    <!-- a <comment> -->
    <x:Feedback xmlns:x="urn:x" a='>'>
      <a>1 &lt; 2 &amp; <![CDATA[3 < 4]]></a><b/><b c="/">two</b>
    </x:Feedback>`)
  expect(root?.name).toBe("feedback")
  expect(childOf(root, "a")?.text).toBe("1 < 2 & 3 < 4")
  expect(childrenOf(root, "b").map(({ text }) => text)).toEqual(["", "two"])
  expect(childOf(root, "none")).toBeUndefined()
})

describe("refused is", () => {
  test.each([
    ["a document type", "<!DOCTYPE a><a/>"],
    ["an entity", '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>'],
    ["an external entity", '<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>'],
    ["a document type within", "<a><!DOCTYPE b></a>"],
    ["a missing end", "<a><b></b>"],
    ["a wrong end", "<a><b></a></b>"],
    ["an end of another name", "<a></b></a>"],
    ["an end too many", "<a/></a>"],
    ["a second root", "<a/><b/>"],
    ["a comment without end", "<a><!-- </a>"],
    ["a tag without end", `<a ${"b".repeat(10_000)}`],
    ["nothing", ""],
    ["text", "no xml at all"],
    ["too many elements", `<a>${"<b/>".repeat(1_001)}</a>`],
    ["too deep elements", "<a>".repeat(11) + "</a>".repeat(11)],
  ])("%s", (_, text) => {
    expect(read(text)).toBeUndefined()
  })
})

test("reading ends, whatever the text is", () => {
  const token = fc.constantFrom(
    ...["<", ">", "</", "/>", "<a", "<a>", "</a>", "<!--", "-->", "<![CDATA[", "]]>", "<?", "?>"],
    ...['"', "'", "&lt;", "&#x41;", "&", "a", " ", "=", ":", "<!DOCTYPE", "\0", "\ud800"],
  )
  fc.assert(
    fc.property(fc.array(token, { maxLength: 100 }), (tokens) => {
      read(tokens.join(""))
    }),
    { seed: 13, numRuns: 3_000 },
  )
})

test.each([
  ["tags that never end", "<a ".repeat(1_000_000)],
  ["quotes that never end", '<a b="'.repeat(500_000)],
  ["comments that never end", "<!--".repeat(1_000_000)],
  ["a deep tree", "<a>".repeat(1_000_000)],
  ["one long text", `<a>${"&amp;".repeat(500_000)}</a>`],
])("%s are read in one pass", (_, text) => {
  readXml(text, { elements: 400_000, depth: 20 })
})
