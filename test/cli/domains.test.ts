import { describe, expect, test } from "bun:test"
import { pauseAfter } from "../../cli/commands/domains"
import { countLine, differenceLines, foundOf, recordLine } from "../../cli/lib/dns-records"
import { painter } from "../../cli/lib/terminal"
import type { Components } from "../../src/client/components"
import { startRelay } from "../harness/relay"
import { onTerminal } from "./belfry"
import { FakeApi, ID, KEY } from "./fake-api"
import { belfry } from "./lines"

const at = (api: FakeApi) => ({ BELFRY_URL: api.url, BELFRY_API_KEY: KEY })
const paint = painter(false)

const record: Components["DnsRecord"] = {
  purpose: "dkim",
  type: "TXT",
  name: "svc1._domainkey",
  host: "svc1._domainkey.acme.test",
  value: "v=DKIM1; k=rsa; p=MIIB",
  priority: null,
  ttl: 3600,
  required: true,
  verified: false,
  status: "missing",
  found: [],
  hint: null,
  mistake: null,
  difference: null,
  answers: [{ server: "ns1.acme.test", answer: "NXDOMAIN", values: [], alias: null }],
}

const domain = (own: object = {}) => ({
  id: ID,
  domain: "acme.test",
  status: "pending",
  dns_records: [record],
  records_total: 4,
  records_verified: 2,
  warning: null,
  last_checked_at: null,
  next_check_at: null,
  verified_at: null,
  created_at: "2026-11-21T10:00:00.000Z",
  ...own,
})

test("a record is one line: where, what is expected, and what each server said", () => {
  const widths = { purpose: 4, host: 25 }
  expect(recordLine(record, widths, paint)).toBe(
    'DKIM  svc1._domainkey.acme.test  ✗ expected "v=DKIM1…"  found NXDOMAIN (ns1.acme.test)',
  )
  expect(recordLine({ ...record, status: "verified", verified: true }, widths, paint)).toBe(
    "DKIM  svc1._domainkey.acme.test  ✓ verified",
  )
  const open = { ...record, status: "pending" as const }
  expect(recordLine(open, widths, paint)).toEndWith("not known yet: NXDOMAIN (ns1.acme.test)")
  const two = [
    { server: "ns1", answer: "NOERROR", values: ["v=DKIM1; p=\u001b[31mAAA"], alias: null },
    { server: "ns2", answer: "NOERROR", values: [], alias: null },
    { server: "ns3", answer: "NOERROR", values: [], alias: null },
  ]
  expect(foundOf({ ...record, answers: two })).toBe(
    '"v=DKIM1; p=AAA" (ns1); no such record (ns2, ns3)',
  )
  expect(countLine(domain() as never)).toBe("2/4 verified")
})

test("the first wrong character is marked in its surroundings", () => {
  const expected = `${"x".repeat(50)}A${"y".repeat(50)}`
  const difference = { at: 50, expected, found: expected.replace("A", "B") }
  const [wanted = "", found = "", mark = ""] = differenceLines({ ...record, difference }, paint)
  const place = mark.indexOf("^")
  expect([wanted[place], found[place]]).toEqual(["A", "B"])
  expect(mark).toContain("character 51")
})

describe("domains", () => {
  test("are found by their names; another one that only holds the name is none", async () => {
    using api = new FakeApi()
    api.data("GET /v1/domains", [domain({ id: "other", domain: "xacme.test" }), domain()])
    api.data(`GET /v1/domains/${ID}`, domain())
    const found = await belfry(["domains", "get", "Acme.test."], { env: at(api) })
    expect([found.exit, JSON.parse(found.out).id]).toEqual([0, ID])
    for (const name of ["cme.test", "acme.test/x", "acme%2etest"]) {
      expect((await belfry(["domains", "get", name], { env: at(api) })).exit).toBe(3)
    }
  })

  test("check once is 8 as long as it is not verified", async () => {
    using api = new FakeApi()
    api.data(`POST /v1/domains/${ID}/check`, domain())
    expect((await belfry(["domains", "check", ID], { env: at(api) })).exit).toBe(8)
    api.data(`POST /v1/domains/${ID}/check`, domain({ status: "verified" }))
    expect((await belfry(["domains", "check", ID], { env: at(api) })).exit).toBe(0)
  })

  test.each([
    ["verified", 0],
    ["failed", 1],
  ])("check --watch asks no faster than it may, and ends with what is %s", async (status, exit) => {
    using api = new FakeApi()
    api.error(`POST /v1/domains/${ID}/check`, 429, "rate_limit_exceeded", { retry_after: 1 })
    const answers = [domain(), domain({ status })]
    api.answer(`GET /v1/domains/${ID}`, () => ({
      body: { data: answers.shift() ?? domain({ status }), meta: {} },
    }))
    const ended = await belfry(["domains", "check", ID, "--watch"], { env: at(api) })
    expect(ended.exit).toBe(exit)
    const told = ended.out.trim().split("\n")
    expect(told.map((line) => JSON.parse(line).status)).toEqual(["pending", status])
  })

  test("check --watch gives up at the time limit with 75", async () => {
    using api = new FakeApi()
    api.data(`POST /v1/domains/${ID}/check`, domain())
    const words = ["domains", "check", ID, "--watch", "--timeout", "100ms"]
    expect((await belfry(words, { env: at(api) })).exit).toBe(75)
  })

  const soon = { code: "rate_limit_exceeded", message: "Not yet.", details: { retry_after: 1 } }
  const limited = { status: 429, body: { error: soon, meta: {} } }
  const watched = async (url: string) => {
    const env = { BELFRY_URL: url, BELFRY_API_KEY: KEY }
    const { exit, out, err } = await belfry(["domains", "check", ID, "--watch"], { env })
    const told = out.trim().split("\n")
    return { exit, err, told: told.map((line) => JSON.parse(line).status) }
  }

  test("check --watch goes on behind a server that could not answer", async () => {
    using api = new FakeApi()
    const error = { code: "service_unavailable", message: "It stops.", details: {} }
    const answers = [
      limited,
      { status: 503, body: { error, meta: {} } },
      { status: 502, body: "<h1>Bad gateway</h1>" },
    ]
    const verified = { body: { data: domain({ status: "verified" }), meta: {} } }
    api.answer(`POST /v1/domains/${ID}/check`, () => answers.shift() ?? verified)
    api.data(`GET /v1/domains/${ID}`, domain())
    const { exit, told, err } = await watched(api.url)
    expect([exit, told]).toEqual([0, ["pending", "verified"]])
    expect(err).toBe("It stops. The command asks again until the server answers.\n")
  })

  test("check --watch goes on behind a server that was away", async () => {
    using api = new FakeApi()
    const port = Number(new URL(api.url).port)
    await using relay = await startRelay(port)
    const answers = [limited]
    api.answer(`POST /v1/domains/${ID}/check`, () => {
      const answer = answers.shift()
      if (answer) return answer
      relay.to = 1 // where nobody listens
      relay.cut()
      return limited
    })
    api.data(`GET /v1/domains/${ID}`, domain())
    const url = `http://127.0.0.1:${relay.port}`
    const watch = watched(url)
    while (relay.to === port) await Bun.sleep(5)
    const before = relay.connections
    while (relay.connections === before) await Bun.sleep(5)
    api.data(`POST /v1/domains/${ID}/check`, domain({ status: "verified" }))
    relay.to = port
    const { exit, told, err } = await watch
    expect([exit, told]).toEqual([0, ["pending", "verified"]])
    expect(err).toBe(
      `No server answers at ${url}. The command asks again until the server answers.\n`,
    )
  })

  test("check --watch waits for a failing server until the time limit", async () => {
    using api = new FakeApi()
    api.error(`POST /v1/domains/${ID}/check`, 503, "service_unavailable")
    const words = ["domains", "check", ID, "--watch", "--timeout", "100ms"]
    expect((await belfry(words, { env: at(api) })).exit).toBe(75)
  })

  test.each([
    ["what is not allowed", 403, "forbidden", 4],
    ["a domain that is gone", 404, "not_found", 3],
  ] as const)("check --watch ends at once with %s", async (_, status, code, exit) => {
    using api = new FakeApi()
    api.error(`POST /v1/domains/${ID}/check`, status, code)
    expect((await belfry(["domains", "check", ID, "--watch"], { env: at(api) })).exit).toBe(exit)
  })

  test("check --watch of a server that never answered ends at once", async () => {
    const env = { BELFRY_URL: "http://127.0.0.1:1", BELFRY_API_KEY: KEY }
    expect((await belfry(["domains", "check", ID, "--watch"], { env })).exit).toBe(69)
  })

  test.each([
    ["a required record that is missing", { ...record }, 8],
    ["a mistake in one that counts", { ...record, verified: true, mistake: "spf_plus_all" }, 8],
    ["an optional one that is not there", { ...record, required: false, mistake: "not_there" }, 0],
    ["nothing", { ...record, verified: true }, 0],
  ])("doctor finds %s", async (_, one, exit) => {
    using api = new FakeApi()
    api.error(`POST /v1/domains/${ID}/check`, 409, "already_verified")
    api.data(`GET /v1/domains/${ID}`, domain({ dns_records: [one] }))
    expect((await belfry(["domains", "doctor", ID], { env: at(api) })).exit).toBe(exit)
  })

  test("a check of a verified one tells what was seen, and is well", async () => {
    using api = new FakeApi()
    api.error(`POST /v1/domains/${ID}/check`, 409, "already_verified")
    api.data(`GET /v1/domains/${ID}`, domain({ status: "verified", records_verified: 4 }))
    const { exit, out } = await belfry(["domains", "check", ID], { env: at(api) })
    expect([exit, JSON.parse(out).status]).toEqual([0, "verified"])
  })

  const hours = (count: number) => new Date(Date.now() + count * 3_600_000).toISOString()
  const checked_at = hours(-3)
  const next_check_at = hours(21.5)
  const old = { last_checked_at: checked_at, next_check_at }

  test.each(["check", "doctor"])("%s of a verified one says of when it tells", async (verb) => {
    using api = new FakeApi()
    api.error(`POST /v1/domains/${ID}/check`, 409, "already_verified")
    const fine = { ...record, verified: true, status: "verified" }
    api.data(`GET /v1/domains/${ID}`, domain({ ...old, status: "verified", dns_records: [fine] }))
    const { exit, out } = await onTerminal(["domains", verb, ID], { env: at(api), columns: 200 })
    expect(exit).toBe(0)
    expect(Bun.stripANSI(out)).toContain(
      `! Not checked now (the domain is verified): result of ${checked_at} (3 h ago); ` +
        `the server's next check is at ${next_check_at} (in 21 h)`,
    )
  })

  test("doctor says of when it tells where no check is allowed for long", async () => {
    using api = new FakeApi()
    api.error(`POST /v1/domains/${ID}/check`, 429, "rate_limit_exceeded", { retry_after: 1800 })
    api.data(`GET /v1/domains/${ID}`, domain({ last_checked_at: checked_at }))
    const { exit, out } = await onTerminal(["domains", "doctor", ID], { env: at(api) })
    expect(exit).toBe(8)
    expect(Bun.stripANSI(out)).toContain(
      `Not checked now (the next check is allowed in 30 min): result of ${checked_at} (3 h ago)\r\n`,
    )
  })

  test("doctor waits where one was a moment ago", async () => {
    using api = new FakeApi()
    const path = `/v1/domains/${ID}`
    const fine = domain({ status: "verified", dns_records: [{ ...record, verified: true }] })
    api.answer(`POST ${path}/check`, () => {
      const limited = { code: "rate_limit_exceeded", message: "", details: { retry_after: 1 } }
      const tries = api.seen.filter(({ method }) => method === "POST").length
      if (tries > 1) return { body: { data: fine, meta: {} } }
      return { status: 429, body: { error: limited, meta: {} } }
    })
    api.data(`GET ${path}`, domain())
    const { exit, out } = await belfry(["domains", "doctor", ID], { env: at(api) })
    expect([exit, JSON.parse(out).status]).toEqual([0, "verified"])
  })

  test("check --watch looks often at first, and leaves checks of the hour to others", () => {
    let count = 0
    for (let at = 0; at < 3_600_000; at += pauseAfter(count)) count += 1
    expect(count).toBe(50)
    expect(pauseAfter(1)).toBe(10_000)
  })

  test("a live check says nothing of another time", async () => {
    using api = new FakeApi()
    api.data(`POST /v1/domains/${ID}/check`, domain(old))
    const { out } = await onTerminal(["domains", "doctor", ID], { env: at(api) })
    expect(out).not.toContain("Not checked now")
  })

  test("a name outside ASCII is looked for as the server keeps it", async () => {
    using api = new FakeApi()
    const kept = domain({ domain: "xn--bcher-kva.example" })
    api.data("GET /v1/domains", [kept])
    api.data(`GET /v1/domains/${ID}`, kept)
    const { exit } = await belfry(["domains", "get", "Bücher.example."], { env: at(api) })
    expect(exit).toBe(0)
  })

  test.each([
    ["pending", 0],
    ["failed", 8],
  ])("doctor says that the provider's word is %s", async (word, exit) => {
    using api = new FakeApi()
    const provider = { provider_identity_status: "success", provider_dkim_status: word }
    const dns_records = [{ ...record, verified: true, status: "verified" }]
    api.data(`POST /v1/domains/${ID}/check`, domain({ ...provider, dns_records }))
    const told = await onTerminal(["domains", "doctor", ID], { env: at(api) })
    expect(told.exit).toBe(exit)
    expect(told.out).toContain(`has not accepted the domain: identity success, DKIM ${word}`)
  })

  test("an update without a change asks nobody", async () => {
    using api = new FakeApi()
    const { exit, err } = await belfry(["domains", "update", ID], { env: at(api) })
    expect([exit, api.seen.length]).toEqual([2, 0])
    expect(err).toContain("nothing to change")
  })

  test.each(["localhost", "192.0.2.7"])("adding says that nobody finds %s", async (value) => {
    using api = new FakeApi()
    const mx = { ...record, purpose: "return_path", type: "MX", value }
    api.data("POST /v1/domains", domain({ dns_records: [mx] }))
    const told = await onTerminal(["domains", "add", "acme.test"], { env: at(api) })
    expect(told.out).toContain("Set domains.host")
  })

  test("records on a terminal are cut to its width, and name the command for whole values", async () => {
    using api = new FakeApi()
    const one = { ...record, value: `v=DKIM1; p=${"x".repeat(300)}` }
    api.data(`GET /v1/domains/${ID}`, domain({ dns_records: [one] }))
    const { out } = await onTerminal(["domains", "records", ID], { env: at(api) })
    expect(out).toContain("…")
    expect(out).toContain("→ belfry domains records acme.test --format bind")
  })

  test("records refuse a format that there is not", async () => {
    using api = new FakeApi()
    const words = ["domains", "records", ID, "--format", "xml"]
    expect([(await belfry(words, { env: at(api) })).exit, api.seen.length]).toEqual([2, 0])
  })
})
