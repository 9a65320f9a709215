import { describe, expect, test } from "bun:test"
import { gzipSync } from "node:zlib"
import { classify } from "../../src/lib/auto-reply"
import { readTlsReport } from "../../src/lib/tls-report"
import { TLS_NAME, TLS_REPORT, tlsMail } from "../fixtures/reports/aggregates"
import { seen } from "../fixtures/reports/mime"
import fc from "../harness/properties"

describe("a TLS report is read", () => {
  const json = JSON.stringify(TLS_REPORT)
  test.each([
    ["as JSON", tlsMail("application/tlsrpt+json", TLS_NAME, json)],
    ["as gzip", tlsMail("application/tlsrpt+gzip", `${TLS_NAME}.gz`, gzipSync(json))],
    [
      "as gzip of no declared kind",
      tlsMail("application/octet-stream", `${TLS_NAME}.gz`, gzipSync(json)),
    ],
    ["with a byte order mark", tlsMail("application/json", TLS_NAME, `\ufeff${json}`)],
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
  const [policy] = TLS_REPORT.policies
  const long = { ...TLS_REPORT, policies: Array(150).fill(policy) }
  const mail = seen(tlsMail("application/tlsrpt+json", TLS_NAME, JSON.stringify(long)), "")
  const report = readTlsReport(mail)
  expect(report).toMatchObject({ failed_sessions: 150 * 303, truncated: true })
  expect(report?.policies).toHaveLength(50)
})

describe("no report is", () => {
  test.each([
    ["a gzip bomb", gzipSync(Buffer.alloc(100_000_000))],
    ["a deep list", gzipSync("[".repeat(2_000_000))],
    ["half a report", gzipSync(JSON.stringify(TLS_REPORT).slice(0, 200))],
    ["a report without policies", gzipSync('{"report-id":"1"}')],
    ["JSON of another kind", gzipSync('{"policies":[]}')],
    ["nothing", gzipSync("null")],
  ])("%s", (_, content) => {
    const mail = seen(tlsMail("application/tlsrpt+gzip", `${TLS_NAME}.gz`, content), "a@b.test")
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
