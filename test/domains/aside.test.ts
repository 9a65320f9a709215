import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { resolver } from "../../src/core/dns"
import { monotonic } from "../../src/core/time"
import { checkRecords } from "../../src/domains/check"
import type { DomainRow } from "../../src/domains/expected-records"
import { nameServer } from "../core/name-server"
import { type Knot, noKnot, type Records, startKnot } from "../harness/knot"
import { PLACE } from "../harness/service"
import { netOf, type Right, rightRecords, testDomain, testKey } from "./subject"

const key = await testKey()
const dkimText = `TXT "v=DKIM1; k=rsa; p=${key.public_key}"`

describe.skipIf(noKnot)("where a record leads to a zone that nobody serves", () => {
  let knot: Knot
  beforeAll(async () => {
    knot = await startKnot({
      "two.test": ["a CNAME b.three.test.", "go CNAME on.three.test."],
      "three.test": [
        `b ${dkimText}`,
        `on CNAME ${PLACE.tracking_host}.`,
        "off CNAME off.dead.example.",
      ],
    })
  })
  afterAll(() => knot[Symbol.asyncDispose]())

  let count = 0
  async function look(own: Partial<Right>, row: Partial<DomainRow> = {}) {
    const domain = `acme${++count}.test`
    await knot.serve(domain, rightRecords(key, own))
    const subject = { row: testDomain(domain, row), keys: [key], targets: PLACE }
    return checkRecords(netOf([knot.address]), subject)
  }
  const more = (...records: Records) => ({ more: records })

  test("an MX record that names it is elsewhere", async () => {
    const { return_path } = await look(more("bounce MX 10 mail.dead.example."))
    expect(return_path).toMatchObject({
      status: "mismatch",
      mistake: "mx_elsewhere",
      found: ["10 mail.dead.example"],
      answers: [{ answer: "NOERROR" }],
    })
    expect(return_path?.hint).toContain("mail.dead.example cannot be resolved: ")
  })

  test("an alias of it is named, and what stands there is open", async () => {
    const { dmarc, verification } = await look({ dmarc: ["_dmarc CNAME _dmarc.dead.example."] })
    expect(dmarc).toMatchObject({
      status: "pending",
      mistake: "alias_unresolved",
      answers: [{ alias: "_dmarc.dead.example" }],
    })
    expect(dmarc?.hint).toStartWith("The name is an alias (CNAME) of _dmarc.dead.example, which")
    expect(verification?.status).toBe("verified")
  })

  test("tracking that leads there over others is open", async () => {
    const { tracking } = await look(more("go CNAME off.three.test."), { tracking_subdomain: "go" })
    expect(tracking).toMatchObject({
      status: "pending",
      mistake: "alias_unresolved",
      found: ["off.three.test"],
    })
    expect(tracking?.hint).toContain("off.dead.example cannot be resolved: ")
  })

  test("an alias over several zones is followed to its end", async () => {
    const own = { dkim: ["svc1._domainkey CNAME a.two.test."], ...more("go CNAME go.two.test.") }
    const { dkim, tracking } = await look(own, { tracking_subdomain: "go" })
    expect(dkim).toMatchObject({ status: "verified", mistake: null })
    expect(tracking).toMatchObject({ status: "verified", mistake: null })
  })

  test("what is wrong at one server is told, though another's answer is open", async () => {
    const [one, other] = [await startKnot(), await startKnot()]
    await using _ = one
    await using __ = other
    await one.serve("acme.test", rightRecords(key, { spf: ['bounce TXT "v=spf1 -all"'] }))
    const open = `bounce TXT "v=spf1 include:dead.example ${PLACE.mechanisms.join(" ")} ~all"`
    await other.serve("acme.test", rightRecords(key, { spf: [open] }))
    const subject = { row: testDomain("acme.test"), keys: [key], targets: PLACE }
    const { spf } = await checkRecords(netOf([other.address, one.address]), subject)
    expect(spf).toMatchObject({ status: "mismatch", mistake: "spf_mechanism_missing" })
  })
})

test("what a record leads to may be silent: its own server's answer stays to be seen", async () => {
  const value = `v=spf1 include:slow.test ${PLACE.mechanisms.join(" ")} ~all`
  const silent = await nameServer(() => "silence")
  const own = await nameServer((name) => (name === "bounce.acme.test" ? [{ data: [value] }] : []))
  const dns = resolver({ servers: [silent.address] })
  const net = { dns, servers: [own.address], try_ms: 400 }
  const subject = { row: testDomain("acme.test"), keys: [key], targets: PLACE }
  const { spf } = await checkRecords(net, subject, monotonic() + 1200)
  expect(spf).toMatchObject({ status: "pending", mistake: "unanswered", found: [value] })
  for (const one of [silent, own]) one.close()
})
