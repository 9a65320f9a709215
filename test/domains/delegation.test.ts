import { afterEach, expect, test } from "bun:test"
import { Packet } from "dns2"
import { resolver } from "../../src/core/dns"
import { checkRecords } from "../../src/domains/check"
import { type NameServer, nameServer, type Say, type Zone } from "../core/name-server"
import { PLACE } from "../harness/service"
import { netOf, rightTexts, testDomain, testKey } from "./subject"

const TRY_MS = 400

const open: NameServer[] = []
afterEach(() => {
  for (const one of open.splice(0)) one.close()
})

async function scripted(zone: Zone): Promise<string> {
  const server = await nameServer(zone)
  open.push(server)
  return server.address
}

const key = await testKey()

/** A look where the servers of the domain have to be found by a resolver that says these things. */
async function lookVia(says: Record<string, Say>, domain: string) {
  const address = await scripted((name, kind) => says[`${name} ${kind}`] ?? [])
  const dns = resolver({ servers: [address], try_ms: TRY_MS })
  const subject = { row: testDomain(domain), keys: [key], targets: PLACE }
  return checkRecords({ dns, servers: [], try_ms: TRY_MS }, subject)
}

const CNAME = Packet.TYPE.CNAME
const alias = (domain: string) => ({ type: CNAME, domain })
const ns = (name: string, server: string) => ({ name, ns: server })
const here: Say = [{ address: "127.0.0.1" }]

test("the servers of an alias do not speak for the name: those of the zone above it are asked", async () => {
  const { verification } = await lookVia(
    {
      "status.acme.test NS": [alias("vendor.test"), ns("vendor.test", "ns1.vendor.test")],
      "acme.test NS": [ns("ACME.test", "ns1.acme.test"), ns("vendor.test", "ns1.vendor.test")],
      "ns1.acme.test A": here,
      "ns1.vendor.test A": here,
    },
    "status.acme.test",
  )
  expect(verification?.answers.map(({ server }) => server)).toEqual(["ns1.acme.test"])
})

test("where the zone itself is an alias nobody is asked in its place", async () => {
  const { verification } = await lookVia(
    {
      "acme.test NS": [alias("vendor.test"), ns("vendor.test", "ns1.vendor.test")],
      "ns1.vendor.test A": here,
    },
    "acme.test",
  )
  expect(verification).toMatchObject({ status: "pending", mistake: "alias_at_apex", answers: [] })
  expect(verification?.hint).toContain("is an alias (CNAME) of vendor.test")
})

test.each<[string, string, Say]>([
  ["the zone above knows no such name", "acme.test", { denied_by: "test", code: "NXDOMAIN" }],
  ["the root knows no such name", "acme.test", { denied_by: "", code: "NXDOMAIN" }],
  ["a registry has it without servers", "acme.co.uk", { denied_by: "uk", code: "NOERROR" }],
  ["a private registry has it no more", "a.eu.org", { denied_by: "eu.org", code: "NXDOMAIN" }],
])("records of a domain are missing where %s", async (_, domain, said) => {
  const checks = await lookVia({ [`${domain} NS`]: said }, `mail.${domain}`)
  expect(Object.values(checks).map((one) => one?.status)).toEqual(Array(5).fill("missing"))
  expect(checks.dkim).toMatchObject({ mistake: "not_delegated", found: [] })
  expect(checks.dkim?.hint).toStartWith(`${domain} is not delegated: `)
})

test.each<[string, string, Say]>([
  ["fails", "acme.test", "SERVFAIL"],
  ["is silent", "acme.test", "silence"],
  ["denies without an authority", "acme.test", "NXDOMAIN"],
  ["has nothing, and no authority", "acme.test", []],
  [
    "asks servers that do not name themselves",
    "acme.test",
    { denied_by: "acme.test", code: "NOERROR" },
  ],
  ["has the denial from elsewhere", "acme.test", { denied_by: "filter.test", code: "NXDOMAIN" }],
  [
    "has a name that stands in another's zone",
    "a.github.io",
    { denied_by: "github.io", code: "NOERROR" },
  ],
])("nothing is known where the resolver %s", async (_, domain, said) => {
  const checks = await lookVia({ [`${domain} NS`]: said }, domain)
  for (const check of Object.values(checks)) {
    expect(check).toMatchObject({ status: "pending", mistake: "unanswered" })
  }
})

test("records of other names that a server adds to its answer verify nothing", async () => {
  const texts = rightTexts(key)
  const rows = (host: string, owner: string): Say =>
    texts[host] ? [{ name: owner, data: texts[host].match(/.{1,255}/g) ?? [] }] : "NXDOMAIN"
  const look = async (owner: (host: string) => string) => {
    const server = await scripted((name, kind) => (kind === "TXT" ? rows(name, owner(name)) : []))
    return checkRecords(netOf([server], TRY_MS), {
      row: testDomain("acme.test"),
      keys: [key],
      targets: PLACE,
    })
  }
  const four = ["verification", "spf", "dkim", "dmarc"] as const
  const own = await look((host) => host.toUpperCase())
  expect(four.map((name) => own[name]?.status)).toEqual(Array(4).fill("verified"))
  const others = await look((host) => host.replace("acme.test", "vendor.test"))
  expect(four.map((name) => others[name]?.status)).toEqual(Array(4).fill("missing"))
})
