import { describe, expect, test } from "bun:test"
import { gzipSync } from "node:zlib"
import fc from "fast-check"
import { classify } from "../../src/lib/mail-kind"
import { readTlsReport } from "../../src/lib/tls-report"
import { base64, multipart, part, seen } from "../fixtures/reports/mime"

const REPORT = {
  "organization-name": "Company-X",
  "date-range": {
    "start-datetime": "2026-11-21T00:00:00Z",
    "end-datetime": "2026-11-21T23:59:59Z",
  },
  "contact-info": "sts-reporting@company-x.example",
  "report-id": "5065427c-23d3-47ca-b6e0-946ea0e8c4be",
  policies: [
    {
      policy: {
        "policy-type": "sts",
        "policy-string": [
          "version: STSv1",
          "mode: testing",
          "mx: *.mail.sender.test",
          "max_age: 86400",
        ],
        "policy-domain": "sender.test",
        "mx-host": "*.mail.sender.test",
      },
      summary: { "total-successful-session-count": 5326, "total-failure-session-count": 303 },
      "failure-details": [
        {
          "result-type": "certificate-expired",
          "sending-mta-ip": "2001:db8:abcd:0012::1",
          "receiving-mx-hostname": "mx1.mail.sender.test",
          "failed-session-count": 100,
        },
        {
          "result-type": "starttls-not-supported",
          "sending-mta-ip": "2001:db8:abcd:0013::1",
          "receiving-mx-hostname": "mx2.mail.sender.test",
          "receiving-ip": "203.0.113.56",
          "failed-session-count": 203,
          "failure-reason-code": "X509_V_ERR_PROXY_PATH_LENGTH_EXCEEDED",
        },
      ],
    },
    {
      policy: { "policy-type": "no-policy-found", "policy-domain": "sender.test" },
      summary: { "total-successful-session-count": 7, "total-failure-session-count": 0 },
    },
  ],
}

const HEAD =
  "From: tlsrpt@company-x.example\nTo: tlsrpt@sender.test\nSubject: Report Domain: sender.test Submitter: company-x.example\nTLS-Report-Domain: sender.test"
const NAME = "company-x.example!sender.test!1795219200!1795305599!001.json"

const mailWith = (type: string, name: string, content: Uint8Array | string) =>
  multipart(HEAD, 'multipart/report; report-type="tlsrpt"', [
    part("Content-Type: text/plain", "This is an aggregate TLS report."),
    part(
      `Content-Type: ${type}\nContent-Disposition: attachment; filename="${name}"\nContent-Transfer-Encoding: base64`,
      base64(content),
    ),
  ])

describe("a TLS report is read", () => {
  const json = JSON.stringify(REPORT)
  test.each([
    ["as JSON", mailWith("application/tlsrpt+json", NAME, json)],
    ["as gzip", mailWith("application/tlsrpt+gzip", `${NAME}.gz`, gzipSync(json))],
    [
      "as gzip of no declared kind",
      mailWith("application/octet-stream", `${NAME}.gz`, gzipSync(json)),
    ],
    ["with a byte order mark", mailWith("application/json", NAME, `\ufeff${json}`)],
  ])("%s", (_, raw) => {
    const mail = seen(raw, "tlsrpt@company-x.example")
    expect(classify(mail).kind).toBe("tls_report")
    const report = readTlsReport(mail)
    expect(report).toMatchObject({
      organization_name: "Company-X",
      report_id: "5065427c-23d3-47ca-b6e0-946ea0e8c4be",
      begin: "2026-11-21T00:00:00.000Z",
      end: "2026-11-21T23:59:59.000Z",
      successful_sessions: 5333,
      failed_sessions: 303,
      truncated: false,
    })
    expect(report?.policies[0]).toMatchObject({
      policy_type: "sts",
      policy_domain: "sender.test",
      mx_host: ["*.mail.sender.test"],
      failures: [
        { result_type: "certificate-expired", failed_sessions: 100, reason_code: null },
        { receiving_ip: "203.0.113.56", failed_sessions: 203 },
      ],
    })
    expect(report?.policies[0]?.policy_string).toContain("mode: testing")
  })
})

test("of a long report the first policies and failures are kept, and all sessions are counted", () => {
  const [policy] = REPORT.policies
  const long = { ...REPORT, policies: Array(150).fill(policy) }
  const mail = seen(mailWith("application/tlsrpt+json", NAME, JSON.stringify(long)), "")
  const report = readTlsReport(mail)
  expect(report).toMatchObject({ failed_sessions: 150 * 303, truncated: true })
  expect(report?.policies).toHaveLength(100)
})

describe("no report is", () => {
  test.each([
    ["a gzip bomb", gzipSync(Buffer.alloc(100_000_000))],
    ["a deep list", gzipSync("[".repeat(2_000_000))],
    ["half a report", gzipSync(JSON.stringify(REPORT).slice(0, 200))],
    ["a report without policies", gzipSync('{"report-id":"1"}')],
    ["JSON of another kind", gzipSync('{"policies":[]}')],
    ["nothing", gzipSync("null")],
  ])("%s", (_, content) => {
    const mail = seen(mailWith("application/tlsrpt+gzip", `${NAME}.gz`, content), "a@b.test")
    expect(readTlsReport(mail)).toBeUndefined()
  })
})

test("whatever the JSON says, reading it never throws", () => {
  const value = fc.jsonValue({ maxDepth: 4 })
  const policy = fc.record(
    { policy: value, summary: value, "failure-details": value },
    { requiredKeys: [] },
  )
  const report = fc.record({
    "report-id": value,
    "organization-name": value,
    "date-range": value,
    policies: fc.oneof(value, fc.array(fc.oneof(value, policy))),
  })
  fc.assert(
    fc.property(report, (json) => {
      const content = Buffer.from(JSON.stringify(json))
      const content_type = "application/tlsrpt+json"
      const found = { content_type, params: {}, filename: null, headers: {}, content }
      readTlsReport({ headers: {}, text: null, html: null, parts: [found], envelope_from: "" })
    }),
    { seed: 13, numRuns: 1_000 },
  )
})
