import { afterEach, expect, test } from "bun:test"
import { Packet } from "dns2"
import { resolver } from "../../src/core/dns"
import { checkRecords } from "../../src/domains/check"
import type { DomainRow } from "../../src/domains/expected-records"
import { type NameServer, nameServer, type Say, type Zone } from "../core/name-server"
import { type Knot, noKnot, startKnot } from "../harness/knot"
import { PLACE } from "../harness/service"
import { netOf, rightRecords, TOKEN, testDomain, testKey } from "./subject"

/** Long enough for servers of this very process under load; who is silent is waited for as long. */
const TRY_MS = 400

const open: (NameServer | Knot)[] = []
afterEach(async () => {
  for (const one of open.splice(0)) {
    if ("close" in one) one.close()
    else await one[Symbol.asyncDispose]()
  }
})

async function scripted(zone: Zone): Promise<string> {
  const server = await nameServer(zone)
  open.push(server)
  return server.address
}

const VALUES: Record<string, string> = {
  "_svc-verify.acme.test": `svc-domain-verification=${TOKEN}`,
  "bounce.acme.test": "v=spf1 a:mx.belfry.test ~all",
  "_dmarc.acme.test": "v=DMARC1; p=none",
}

/** A server that has all that is right, but for some names. */
const having = (own: Record<string, Say>, key: string) =>
  scripted((name, kind): Say => {
    const said = own[name] ?? own[`${name} ${kind}`]
    if (said) return said
    if (kind !== "TXT") return []
    const value = name === "svc1._domainkey.acme.test" ? `v=DKIM1; k=rsa; p=${key}` : VALUES[name]
    return value ? [{ data: value.match(/.{1,255}/g) ?? [] }] : "NXDOMAIN"
  })

async function look(servers: string[], own: Partial<DomainRow> = {}, domain = "acme.test") {
  const key = await testKey()
  const subject = { row: testDomain(domain, own), keys: [key], targets: PLACE }
  return checkRecords(netOf(servers, TRY_MS), subject)
}

const key = await testKey()

test("a server that fails is passed over, and named", async () => {
  const good = await having({}, key.public_key)
  const bad = await scripted(() => "SERVFAIL")
  const { dmarc } = await look([good, bad])
  expect(dmarc).toMatchObject({ status: "verified", mistake: "server_failing" })
  expect(dmarc?.hint).toContain(`${bad} did not answer (SERVFAIL)`)
  expect(dmarc?.answers.map(({ server, answer }) => [server, answer])).toEqual([
    [good, "NOERROR"],
    [bad, "SERVFAIL"],
  ])
})

test.skipIf(noKnot)(
  "one server with the zone of yesterday keeps a record from counting",
  async () => {
    const [fresh, stale] = [await startKnot(), await startKnot()]
    open.push(fresh, stale)
    await fresh.serve("acme.test", rightRecords(key))
    await stale.serve("acme.test", rightRecords(key, { dmarc: [] }))
    const { dmarc, spf } = await look([fresh.address, stale.address])
    expect(spf?.status).toBe("verified")
    expect(dmarc).toMatchObject({ status: "mismatch", mistake: "servers_disagree" })
    expect(dmarc?.hint).toStartWith(
      `${fresh.address} has the record, but ${stale.address} has another`,
    )
    await stale.serve("acme.test", rightRecords(key))
    expect((await look([fresh.address, stale.address])).dmarc?.status).toBe("verified")
  },
)

test.each<[string, Say, string]>([
  ["silence", "silence", "no answer"],
  ["failure", "SERVFAIL", "SERVFAIL"],
])("where nobody answers but with %s, nothing is known", async (_, say, told) => {
  const server = await scripted(() => say)
  for (const check of Object.values(await look([server]))) {
    expect(check).toMatchObject({ status: "pending", mistake: "unanswered" })
    expect(check?.hint).toContain(`${server}: ${told}`)
  }
})

test.skipIf(noKnot)(
  "servers that do not know the zone are told apart from those that are away",
  async () => {
    const knot = await startKnot({ "other.test": [] })
    open.push(knot)
    const { spf } = await look([knot.address])
    expect(spf).toMatchObject({ status: "pending", mistake: "unanswered" })
    expect(spf?.hint).toContain("Check that the zone is set up there.")
  },
)

test("an alias at the top of the domain is named", async () => {
  const alias: Say = [{ type: Packet.TYPE.CNAME, domain: "shop.example" }]
  const top = { "acme.test CNAME": alias, "acme.test MX": alias }
  const server = await having({ ...top, "_svc-verify.acme.test": "NXDOMAIN" }, key.public_key)
  const { verification, receiving } = await look([server], { receiving: true })
  expect(verification).toMatchObject({ status: "missing", mistake: "alias_at_apex" })
  expect(receiving).toMatchObject({ status: "missing", mistake: "alias_at_apex" })
  expect(receiving?.hint).toContain("is an alias (CNAME) of shop.example")
})

test("a record behind an alias counts, wherever it leads", async () => {
  const alias: Say = [{ type: Packet.TYPE.CNAME, domain: "keys.other.test" }]
  const value = `v=DKIM1; k=rsa; p=${key.public_key}`
  const there: Say = [{ data: value.match(/.{1,255}/g) ?? [] }]
  const own = { "svc1._domainkey.acme.test": alias, "keys.other.test": there }
  const { dkim } = await look([await having(own, "")])
  expect(dkim).toMatchObject({ status: "verified", found: [value] })
})

test("an included record that cannot be asked for leaves SPF open", async () => {
  const value = "v=spf1 include:slow.test a:mx.belfry.test ~all"
  const spf: Say = [{ data: [value] }]
  const server = await having({ "bounce.acme.test": spf, "slow.test": "SERVFAIL" }, key.public_key)
  const checks = await look([server])
  const { status, mistake, hint, found, answers } = checks.spf ?? {}
  expect([status, mistake, found]).toEqual(["pending", "spf_include_unresolved", [value]])
  expect(answers).toMatchObject([{ answer: "NOERROR", values: [value] }])
  expect(hint).toStartWith(
    "include:slow.test is before our part, and receivers cannot resolve it: ",
  )
  expect(checks.dkim?.status).toBe("verified")
})

test.skipIf(noKnot)("the policy of the organization holds for what is below it", async () => {
  const knot = await startKnot({ "acme.test": ['_dmarc TXT "v=DMARC1; p=reject; sp=none"'] })
  open.push(knot)
  const { dmarc } = await look([knot.address], {}, "mail.acme.test")
  expect(dmarc).toMatchObject({ status: "verified", found: ["v=DMARC1; p=reject; sp=none"] })
})

test("another text below, such as a wildcard's, does not hide that policy", async () => {
  const other: Say = [{ data: ["v=spf1 -all"] }]
  const { dmarc } = await look(
    [await having({ "_dmarc.mail.acme.test": other }, key.public_key)],
    {},
    "mail.acme.test",
  )
  expect(dmarc).toMatchObject({ status: "verified", found: ["v=DMARC1; p=none"] })
})

test("while nobody speaks about that policy, nothing is known of it", async () => {
  const { dmarc } = await look(
    [await having({ "_dmarc.acme.test": "silence" }, key.public_key)],
    {},
    "mail.acme.test",
  )
  expect(dmarc).toMatchObject({ status: "pending", mistake: "unanswered" })
})

test("who has been silent is not asked where the missing records may have been put", async () => {
  const dead = await nameServer(() => "silence")
  open.push(dead)
  const { verification, dkim } = await look([dead.address, await having({}, "")])
  expect(verification?.status).toBe("verified")
  expect(dkim).toMatchObject({ status: "mismatch" })
  const bare = await look([dead.address, await scripted(() => "NXDOMAIN")])
  expect(bare.dkim).toMatchObject({ status: "missing", mistake: "not_there" })
  // Five names and the alias at the top, of which each is asked twice; for either look.
  expect(dead.asked()).toBeLessThanOrEqual(2 * 2 * 6)
})

test("aliases without end are left, and so are referrals to thousands", async () => {
  let number = 0
  const server = await nameServer((name, kind): Say => {
    if (kind === "CNAME") return [{ domain: `a${++number}.endless.test` }]
    const many = Array.from({ length: 200 }, (_, at) => `ns${at}.many.test`)
    if (name === "bounce.acme.test" && kind === "TXT") return { referral: name, to: many }
    return "NXDOMAIN"
  })
  open.push(server)
  const { tracking, spf } = await look([server.address], { tracking_subdomain: "go" })
  expect(tracking).toMatchObject({ status: "mismatch", mistake: "alias_elsewhere" })
  expect(spf?.answers[0]?.answer).toStartWith("delegated to ")
  await Bun.sleep(50)
  expect(number).toBeLessThan(20)
  expect(server.asked()).toBeLessThan(250)
})

test("the servers of a domain are found by its NS records, and private ones are not asked", async () => {
  const server = await scripted((name, kind) => {
    if (kind === "NS") return name === "acme.test" ? [{ ns: "ns1.acme.test" }] : []
    return kind === "A" && name === "ns1.acme.test" ? [{ address: "127.0.0.1" }] : []
  })
  const dns = resolver({ servers: [server], try_ms: TRY_MS })
  const row = testDomain("mail.acme.test")
  const checks = await checkRecords(
    { dns, servers: [], try_ms: TRY_MS },
    { row, keys: [], targets: PLACE },
  )
  expect(checks.spf?.answers).toEqual([
    {
      server: "ns1.acme.test",
      answer: "its address 127.0.0.1 is not public",
      values: [],
      alias: null,
    },
  ])
  const nowhere = { row: testDomain("gone.test"), keys: [], targets: PLACE }
  const { spf } = await checkRecords({ dns, servers: [], try_ms: TRY_MS }, nowhere)
  expect(spf?.hint).toContain("Check that the domain is registered and delegated.")
})

test("what a hostile server says is kept in part only", async () => {
  const strings = (n: number) => Array<string>(11).fill(`${n}`.padEnd(200, "x"))
  const long = Array.from({ length: 25 }, (_, n) => ({ data: strings(n) }))
  const { dmarc } = await look([await having({ "_dmarc.acme.test": long }, key.public_key)])
  expect(dmarc?.found).toHaveLength(20)
  expect(Math.max(...(dmarc?.found ?? []).map((value) => value.length))).toBe(2048)
  expect(dmarc?.mistake).toBe("other_text")
})

test("a server that sends us up again is no authority, one that sends us down is followed", async () => {
  const lame = await scripted((): Say => ({ referral: "", to: "a.root-servers.test" }))
  const { spf } = await look([lame])
  expect(spf).toMatchObject({ status: "pending", mistake: "unanswered" })
  expect(spf?.hint).toContain("Check that the zone is set up there.")
  const own = { "bounce.acme.test TXT": { referral: "bounce.acme.test", to: "ns.sub.test" } }
  const down = await look([await having(own, key.public_key)])
  expect(down.spf?.answers[0]?.answer).toBe("delegated to ns.sub.test, but no server there answers")
  expect(down.dkim?.status).toBe("verified")
})
