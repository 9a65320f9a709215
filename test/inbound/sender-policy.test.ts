import { describe, expect, test } from "bun:test"
import { existsSync, readFileSync } from "node:fs"
import { gunzipSync } from "node:zlib"
import {
  type DnsAnswer,
  type DnsAnswers,
  type DnsQuestion,
  keyOf,
} from "../../src/inbound/dns-answers"
import { evaluateSpf, type SpfSender } from "../../src/inbound/sender-policy"
import { note } from "../harness/peers"

/** The test suite of openspf.org for RFC 7208, as Debian brings it with python3-spf. */
const SUITE = "/usr/share/doc/python3-spf/rfc7208-tests.yml.gz"
const is_missing = !existsSync(SUITE)
if (is_missing) note("needs the documents of python3-spf (apt-get install python3-spf)")

type ZoneRow = "TIMEOUT" | Record<string, unknown>

interface Scenario {
  description: string
  tests: Record<string, SuiteCase>
  zonedata: Record<string, ZoneRow[]>
}

interface SuiteCase {
  helo: string
  host: string
  mailfrom: string
  result: string | string[]
}

function scenarios(): Scenario[] {
  if (is_missing) return []
  const text = gunzipSync(readFileSync(SUITE)).toString("utf8")
  const documents = text.split(/^---$/m).slice(1)
  return documents.map((document) => Bun.YAML.parse(document) as Scenario)
}

/** An SPF row counts as a TXT row, unless the name has TXT rows of its own. */
function rowsOf(zone: ZoneRow[], type: string): ZoneRow[] {
  const of = (wanted: string) => zone.filter((row) => row === "TIMEOUT" || wanted in row)
  const has_txt = zone.some((row) => row !== "TIMEOUT" && "TXT" in row)
  return type === "TXT" && !has_txt ? of("SPF") : of(type)
}

function answerOf(zonedata: Scenario["zonedata"], { name, type }: DnsQuestion): DnsAnswer {
  const zones = Object.entries(zonedata)
  const zone = zones.find(([known]) => known.toLowerCase() === name.toLowerCase())?.[1] ?? []
  const alias = zone.find((row) => row !== "TIMEOUT" && "CNAME" in row)
  if (alias && alias !== "TIMEOUT") {
    return answerOf(zonedata, { name: String(alias.CNAME), type })
  }
  if (name.toLowerCase().startsWith("error.") && zone.length === 0) return { unknown: "SERVFAIL" }
  const rows: (string | string[] | { exchange: string; priority: number })[] = []
  for (const row of rowsOf(zone, type)) {
    const value = row === "TIMEOUT" ? row : (row[type] ?? row.SPF)
    if (value === "TIMEOUT") return rows.length > 0 ? { rows } : { unknown: "no answer" }
    if (value === "NONE") continue
    if (type === "TXT") rows.push([value as string | string[]].flat())
    else if (type === "MX") {
      const [priority, exchange] = value as [number, string]
      rows.push({ priority, exchange })
    } else rows.push(String(value))
  }
  return { rows }
}

async function spfOf(sender: SpfSender, zonedata: Scenario["zonedata"]) {
  const answers: DnsAnswers = {}
  for (;;) {
    const missing: DnsQuestion[] = []
    const result = await evaluateSpf(sender, answers, missing)
    if (missing.length === 0) return result
    for (const question of missing) answers[keyOf(question)] = answerOf(zonedata, question)
  }
}

describe.skipIf(is_missing)("the test suite of RFC 7208:", () => {
  test("has 203 cases", () => {
    expect(scenarios().flatMap(({ tests }) => Object.keys(tests))).toHaveLength(203)
  })

  for (const { description, tests, zonedata } of scenarios()) {
    test.each(Object.entries(tests))(`${description}: %s`, async (_, one) => {
      const { helo, host, mailfrom } = one
      const sender = { address: host, helo, mail_from: mailfrom, host: "mx.here.test" }
      const { result } = await spfOf(sender, zonedata)
      // Some cases leave the choice between two results.
      expect([one.result].flat()).toContain(result)
    })
  }
})
