import { expect, test } from "bun:test"
import { toResponse } from "../../src/domains/domain-record"
import type { RecordTargets } from "../../src/domains/expected-records"
import type { RecordCheck } from "../../src/domains/tables"
import { PLACE } from "../harness/service"
import { testDomain, testKey } from "./subject"

const there: RecordCheck = {
  status: "verified",
  found: [],
  hint: null,
  mistake: null,
  difference: null,
  answers: [],
}

const own = { tracking_subdomain: "links", receiving: true }

/** The records that are marked, of a domain that has been checked like this. */
async function marked(targets: Partial<RecordTargets>, records: Record<string, RecordCheck> = {}) {
  const row = testDomain("acme.test", { ...own, records })
  const { dns_records } = toResponse(row, [await testKey()], { ...PLACE, ...targets })
  return dns_records.filter(({ mistake }) => mistake === "host_not_findable")
}

const purposes = async (targets: Partial<RecordTargets>) =>
  (await marked(targets)).map(({ purpose }) => purpose)

test("records that name a host others can resolve are not marked", async () => {
  expect(await purposes({})).toEqual([])
  expect(await purposes({ mechanisms: ["include:spf.a.test", "ip4:192.0.2.7"] })).toEqual([])
})

test("records that name what nobody outside can resolve are marked, each with the setting", async () => {
  const targets = { host: "vm", tracking_host: "vm", mechanisms: ["a:vm"] }
  const records = await marked(targets)
  const of = records.map(({ purpose, hint }) => [purpose, /domains\.\w+/.exec(hint ?? "")?.[0]])
  expect(of).toEqual([
    ["spf", "domains.host"],
    ["return_path", "domains.host"],
    ["tracking", "domains.tracking_host"],
    ["receiving", "domains.host"],
  ])
  const mx = ["return_path" as const, "receiving" as const]
  expect(await purposes({ host: "192.0.2.7", mechanisms: ["ip4:192.0.2.7"] })).toEqual(mx)
  expect(await purposes({ host: "2001:db8::7", mechanisms: ["ip6:2001:db8::7"] })).toEqual(mx)
  for (const term of ["ip4:127.0.0.1", "ip6:::1", "a:localhost", "include:spf"]) {
    expect([term, await purposes({ mechanisms: ["include:a.test", term] })]).toEqual([
      term,
      ["spf"],
    ])
  }
})

test("they are marked also once they are in the zone, and count as there", async () => {
  const targets = { host: "vm", mechanisms: ["a:vm"] }
  const [spf] = await marked(targets, { spf: there })
  expect(spf).toMatchObject({ purpose: "spf", verified: true, status: "verified" })
})

test("what a check found wrong is still told", async () => {
  const targets = { host: "vm", mechanisms: ["a:vm"] }
  const double = { ...there, status: "mismatch" as const, mistake: "double_spf", hint: "Two." }
  const row = testDomain("acme.test", { records: { spf: double } })
  const { dns_records } = toResponse(row, [await testKey()], { ...PLACE, ...targets })
  const spf = dns_records.find(({ purpose }) => purpose === "spf")
  expect(spf?.mistake).toBe("double_spf")
  expect(spf?.hint).toMatch(/domains\.host.* Two\.$/)
})
