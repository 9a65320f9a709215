import { afterEach, describe, expect, test } from "bun:test"
import { Packet } from "dns2"
import { DnsError, resolver } from "../../src/core/dns"
import { type NameServer, nameServer, type Zone } from "./name-server"

const servers: NameServer[] = []
afterEach(() => {
  for (const server of servers.splice(0)) server.close()
})

async function serve(zone: Zone): Promise<NameServer> {
  const server = await nameServer(zone)
  servers.push(server)
  return server
}

async function asking(zone: Zone, try_ms?: number) {
  const server = await serve(zone)
  return { server, dns: resolver({ servers: [server.address], try_ms }) }
}

async function failure(work: Promise<unknown>): Promise<DnsError> {
  const error = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  if (error instanceof DnsError) return error
  throw new Error("no DnsError was thrown", { cause: error })
}

describe("records", () => {
  test("a TXT record keeps its several strings, and several records stay apart", async () => {
    const { dns } = await asking(() => [{ data: ["v=DKIM1; p=AAA", "BBB"] }, { data: ["other"] }])
    expect(await dns.txt("s._domainkey.example.test")).toEqual([
      ["v=DKIM1; p=AAA", "BBB"],
      ["other"],
    ])
  })

  test("addresses, names and mail servers, best first", async () => {
    const zone: Record<string, ReturnType<Zone>> = {
      A: [{ address: "192.0.2.1" }, { address: "192.0.2.2" }],
      AAAA: [{ address: "2001:db8::1" }],
      MX: [
        { exchange: "b.example.test", priority: 20 },
        { exchange: "a.example.test", priority: 10 },
      ],
      CNAME: [{ domain: "else.example.test" }],
      NS: [{ ns: "ns1.example.test" }],
    }
    const { dns } = await asking((_, kind) => zone[kind] ?? [])
    expect(await dns.a("example.test")).toEqual(["192.0.2.1", "192.0.2.2"])
    expect(
      (await dns.aaaa("example.test")).map((text) => new URL(`http://[${text}]`).hostname),
    ).toEqual(["[2001:db8::1]"])
    expect(await dns.mx("example.test.")).toEqual([
      { exchange: "a.example.test", priority: 10 },
      { exchange: "b.example.test", priority: 20 },
    ])
    expect(await dns.cname("www.example.test")).toEqual(["else.example.test"])
    expect((await dns.delegation("example.test")).servers).toEqual(["ns1.example.test"])
  })

  test("of other names, which a server adds, count for nothing", async () => {
    const { dns } = await asking((name, kind) => {
      const own = name === "a.test" ? "A.Test" : name
      const alias = { name: own, type: Packet.TYPE.CNAME, domain: "b.test" }
      const rows = [
        { name: "other.test", ns: "ns.other.test", data: ["other"], address: "192.0.2.66" },
        { name: "B.test", ns: "ns.b.test", data: ["ours"], address: "192.0.2.1" },
      ]
      return kind === "CNAME" ? [{ ...alias, name: "other.test" }] : [alias, ...rows]
    })
    expect(await dns.txt("a.test")).toEqual([["ours"]])
    expect(await dns.a("a.test")).toEqual(["192.0.2.1"])
    expect(await dns.cname("a.test")).toEqual([])
    expect(await dns.delegation("a.test.")).toMatchObject({ servers: [], alias: "b.test" })
  })

  test("the alias on the way to an address is no address", async () => {
    const { dns } = await asking((name) => [
      { name, type: Packet.TYPE.CNAME, domain: "b.test" },
      { name: "b.test", type: Packet.TYPE.A, address: "192.0.2.9" },
    ])
    expect(await dns.a("a.test")).toEqual(["192.0.2.9"])
  })

  test("an answer that does not fit into a datagram comes over TCP", async () => {
    const long = Array.from({ length: 20 }, (_, n) => ({ data: [`${n} ${"x".repeat(200)}`] }))
    const { dns } = await asking(() => long)
    expect(await dns.txt("long.test")).toHaveLength(20)
  })
})

describe("aliases", () => {
  const alias = (domain: string) => ({ type: Packet.TYPE.CNAME, domain })

  test("over several zones are followed where the server knows only its own", async () => {
    const zone: Record<string, ReturnType<Zone>> = {
      "a.test": [alias("b.test")],
      "b.test": [alias("c.test"), { ...alias("d.test"), name: "c.test" }],
      "d.test": [{ data: ["ours"] }],
    }
    const { dns, server } = await asking((name) => zone[name] ?? "NXDOMAIN")
    expect(await dns.txt("a.test")).toEqual([["ours"]])
    expect(server.asked()).toBe(3)
  })

  test("that a resolver has followed lead to nothing where it found nothing", async () => {
    const { dns, server } = await asking(() => ({ recursed: [alias("b.test")] }))
    expect(await dns.aaaa("a.test")).toEqual([])
    expect(server.asked()).toBe(1)
  })

  test("without an end are left", async () => {
    const { dns, server } = await asking((name) => [alias(`x.${name}`)])
    expect((await failure(dns.a("a.test"))).message).toContain("its aliases have no end")
    expect(server.asked()).toBe(11)
    const round = await asking((name) => [alias(name === "a.test" ? "b.test" : "a.test")])
    expect((await failure(round.dns.mx("a.test"))).transient).toBe(true)
  })
})

describe("nothing", () => {
  test("no such name and no such record are both an empty list", async () => {
    const { dns } = await asking((name) => (name === "gone.test" ? "NXDOMAIN" : []))
    expect(await dns.a("gone.test")).toEqual([])
    expect(await dns.mx("empty.test")).toEqual([])
  })

  test("is remembered: the next question asks again", async () => {
    let there = false
    const { dns, server } = await asking(() => (there ? [{ address: "192.0.2.1" }] : "NXDOMAIN"))
    expect(await dns.a("new.test")).toEqual([])
    there = true
    expect(await dns.a("new.test")).toEqual(["192.0.2.1"])
    expect(server.asked()).toBe(2)
  })
})

describe("trouble", () => {
  test("SERVFAIL is transient, after two tries", async () => {
    const { dns, server } = await asking(() => "SERVFAIL")
    const error = await failure(dns.txt("broken.test"))
    expect(error.transient).toBe(true)
    expect(error.message).toContain("SERVFAIL")
    expect(server.asked()).toBe(2)
  })

  test("silence is transient, over UDP and over TCP", async () => {
    const { dns, server } = await asking(() => "silence", 30)
    expect((await failure(dns.a("silent.test"))).transient).toBe(true)
    expect(server.asked()).toBe(2)
    const long = Array.from({ length: 40 }, () => ({ data: ["x".repeat(100)] }))
    const over_tcp = await asking((_, __, by) => (by === "tcp" ? "silence" : long), 30)
    expect((await failure(over_tcp.dns.txt("silent.test"))).message).toContain("TCP")
  })

  test("a server that fails is followed by the next one", async () => {
    const bad = await serve(() => "SERVFAIL")
    const good = await serve(() => [{ address: "192.0.2.7" }])
    const dns = resolver({ servers: [bad.address, good.address] })
    expect(await dns.a("x.test")).toEqual(["192.0.2.7"])
    expect(bad.asked()).toBe(1)
  })

  test.each([
    "",
    "a..b",
    `${"x".repeat(64)}.test`,
    `${"a.".repeat(140)}test`,
    "a b.test",
    "ü.test",
  ])("%j is no name that can be asked for, and that does not pass", async (name) => {
    const { dns, server } = await asking(() => [])
    expect((await failure(dns.a(name))).transient).toBe(false)
    expect(server.asked()).toBe(0)
  })

  test("a name server must be given by its address", () => {
    expect(() => resolver({ servers: ["ns.example.test"] })).toThrow("name server")
  })
})
