import { afterAll, beforeAll, expect, test } from "bun:test"
import { millis } from "../../src/core/time"
import { runCheck } from "../../src/domains/check-job"
import type { JobRow } from "../../src/jobs/jobs"
import { type NameServer, nameServer, type Say } from "../core/name-server"
import { movableClock } from "../harness/clock"
import { PLACE, type TestProject, type TestService, testService } from "../harness/service"
import { ALL, addDomain, check, type Domain, read } from "./acme"
import { runDue, told } from "./background"
import { netOf } from "./subject"

const clock = movableClock()
/** What the one name server says, by name. */
const said = new Map<string, Say>()
let server: NameServer
let service: TestService

beforeAll(async () => {
  server = await nameServer((name, kind) => (kind === "TXT" && said.get(name)) || "NXDOMAIN")
  service = await testService({ domains: { net: netOf([server.address], 60), targets: PLACE } })
})
afterAll(async () => {
  await service[Symbol.asyncDispose]()
  server.close()
})

const text = (...values: string[]): Say =>
  values.map((value) => ({ data: value.match(/.{1,255}/g) ?? [] }))

function publish({ dns_records }: Domain, purposes = ALL) {
  for (const { purpose, host, value, type } of dns_records) {
    if (type === "TXT" && purposes.includes(purpose)) said.set(host, text(value))
  }
}

const hostOf = ({ dns_records }: Domain, wanted: string) =>
  dns_records.find(({ purpose }) => purpose === wanted)?.host ?? ""

test("what was seen once, and is not spoken about now, verifies nothing", async () => {
  const project = await service.project()
  const domain = await addDomain(project)
  publish(domain, ["dkim"])
  expect((await check(project, domain)).body.data.records_verified).toBe(1)
  publish(domain, ["verification", "spf", "dmarc"])
  said.set(hostOf(domain, "dkim"), "silence")
  clock.advance({ seconds: 11 })
  const { data } = (await check(project, domain)).body
  expect([data.status, data.records_verified]).toEqual(["pending", 3])
})

test("what is changed of a verified domain is looked for as at the beginning", async () => {
  const project = await service.project()
  const domain = await addDomain(project)
  publish(domain)
  const { data } = (await check(project, domain)).body
  const hours = (Date.parse(data.next_check_at) - millis()) / 3_600_000
  expect([data.status, Math.round(hours)]).toEqual(["verified", 24])
  const body = { return_path: "back" }
  const changed: Domain = (await project.call("PATCH", `/v1/domains/${domain.id}`, { body })).body
    .data
  await runDue(service)
  expect(await read(project, domain)).toMatchObject({ status: "verified", records_verified: 3 })
  publish(changed)
  clock.advance({ seconds: 61 })
  await runDue(service)
  expect(await read(project, domain)).toMatchObject({ warning: null, records_verified: 4 })
  expect((await told(service, project)).map(({ type }) => type)).toEqual([
    "domain.verified",
    "domain.degraded",
  ])
})

/** A name that two projects have added, with all records of both in the zone. */
async function contested(): Promise<[TestProject, Domain][]> {
  const [one, other] = [await service.project(), await service.project()]
  const mine = await addDomain(one)
  const wanted = { domain: mine.domain, dkim_selector: "other" }
  const theirs: Domain = (await other.post("/v1/domains", wanted)).body.data
  for (const domain of [mine, theirs]) publish(domain)
  said.set(hostOf(mine, "verification"), text(tokenOf(mine), tokenOf(theirs)))
  return [
    [one, mine],
    [other, theirs],
  ]
}

const tokenOf = ({ dns_records }: Domain) =>
  dns_records.find(({ purpose }) => purpose === "verification")?.value ?? ""

test("of two projects that see everything at the same time one is verified", async () => {
  const rows = await contested()
  const handler = runCheck(service.parts.domains)
  await Promise.all(
    rows.map(([{ project_id }, { id, next_check_at }]) => {
      const payload = { domain_id: id, project_id, due: next_check_at ?? "" }
      return handler.run(payload, {} as JobRow)
    }),
  )
  const states = rows.map(async ([project, domain]) => (await read(project, domain)).status)
  expect((await Promise.all(states)).sort()).toEqual(["pending", "verified"])
})

test("who comes second fails after 72 hours, and is told why", async () => {
  const [first, second] = await contested()
  if (!first || !second) throw new Error("there are two")
  expect((await check(...first)).body.data.status).toBe("verified")
  const tried = (await check(...second)).body.data
  expect([tried.status, tried.warning]).toEqual(["pending", expect.stringContaining("another")])
  clock.advance({ seconds: 72 * 3600 + 1 })
  await runDue(service)
  expect((await read(...second)).status).toBe("failed")
  const events = await told(service, second[0])
  expect(events.map(({ type }) => type)).toEqual(["domain.verification_failed"])
})
