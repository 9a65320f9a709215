import { describe, expect, test } from "bun:test"
import { spf } from "mailauth/lib/spf"
import { asksDns, isBareHost, isSameMechanism, isSpf, ownFault, parseSpf } from "../../src/lib/spf"

/** One broken term, and what is told about it. */
const BROKEN: [string, string][] = [
  ["include=example.test", "followed by a colon"],
  ["redirect:example.test", "followed by an equals sign"],
  ["include:", "needs a value"],
  ["include/24", "needs a value"],
  ["include:example.test/24", "not a host name"],
  ["ip4:example.test", "not an IPv4"],
  ["ip4:999.1.1.1", "not an IPv4"],
  ["ip4:010.0.0.1", "not an IPv4"],
  ["ip4:10.1.1", "not an IPv4"],
  ["ip4:10.0.0.0/33", "not an IPv4"],
  ["ip4:10.0.0.0/08", "not an IPv4"],
  ["ip4:10.0.0.0/", "not an IPv4"],
  ["ip4:10.0.0.0/8/8", "not an IPv4"],
  ["ip4:2001:db8::1", "not an IPv6"],
  ["ip6:192.0.2.x", "not an IPv6"],
  ["ip6:192.0.2.1", "not an IPv6"],
  ["ip6:1:2", "not an IPv6"],
  ["ip6:2001:db8::/129", "not an IPv6"],
  ["all:x", "takes no value"],
  ["all/8", "takes no value"],
  ["iclude:x.test", 'no mechanism "iclude"'],
  ["a:", "needs a name"],
  ["a/33", "wrong network length"],
  ["a:h.test/024", "wrong network length"],
  ["mx:h.test/24//129", "wrong network length"],
  ["mx//200", "wrong network length"],
  ["a/24/24", "cannot be read"],
  ["a:h.test,", "not a host name"],
  ["a:h.test:8080", "not a host name"],
  ["a:h.123", "not a host name"],
  ["a:192.0.2.1", "needs ip4: or ip6: before it"],
  ["a:mail", "such as mail.example.com"],
  ["include:b\u00fccher.test", "characters that SPF does not know"],
  ["ptr/24", "cannot be read"],
  ["exists:%{x}.h.test", 'a "%" that does not begin a macro'],
  ["exists:%{i0}.h.test", 'a "%" that does not begin a macro'],
  ["exists:100%.h.test", 'a "%" that does not begin a macro'],
  ["exists:%{t}.h.test", 'a "%" that does not begin a macro'],
  ["redirect=", "needs a name"],
  ["redirect=h.test/24", "not a host name"],
  ["colour=%", 'a "%" that does not begin a macro'],
  ["-redirect=h.test", "cannot be read"],
]

const FINE = [
  "ip4:192.0.2.1 ip4:10.0.0.0/8 ip4:0.0.0.0/0",
  "ip6:2001:db8::1 IP6:2001:DB8::/32 ip6:::ffff:192.0.2.1 ip6:::/0",
  "a a/24 a//64 a/24//64 a:h.test a:h.test/0 A:H.test.//128 a:_h.b-c.test",
  "mx mx/32 mx:h.test/24//64 ptr ptr:h.test",
  "exists:%{ir}.%{v}._spf.%{d2} exists:%{l1r-}.h.test exists:%{i}%%%_%-.h.test a:%{h}",
  "exp=why.%{d} redirect=h.xn--p1ai",
  "colour=red%{t} v=spf1 colour= colour=blue moo.cow-far_out=x",
]

test.each([
  ["v=spf1", true],
  ["v=spf1 -all", true],
  ["V=SPF1 -all", true],
  ["v=spf10 -all", false],
  ["v=spf1-all", false],
  [" v=spf1 -all", false],
])("%s is an SPF record: %p", (text, expected) => {
  expect(isSpf(text)).toBe(expected)
})

describe("a term", () => {
  const only = (term: string) => parseSpf(`v=spf1 ${term}`)[0]

  test("has a qualifier, a name and a value", () => {
    expect(only("~include:_spf.example.test")).toMatchObject({
      qualifier: "~",
      name: "include",
      value: "_spf.example.test",
      fault: null,
    })
    expect(only("a/24")).toMatchObject({ qualifier: "+", name: "a", value: "/24", fault: null })
    expect(only("redirect=example.test")).toMatchObject({ is_modifier: true, fault: null })
    expect(only("IP6:2001:db8::/32")).toMatchObject({ name: "ip6", value: "2001:db8::/32" })
  })

  test.each(BROKEN)("%s is told what is wrong with it", (term, told) => {
    expect(only(term)?.fault).toContain(told)
  })

  test.each(FINE)("%s is fine", (term) => {
    expect(parseSpf(`v=spf1 ${term}`).filter(({ fault }) => fault !== null)).toEqual([])
  })

  test("asks DNS or not", () => {
    const terms = parseSpf("v=spf1 a mx ptr exists:x include:x ip4:192.0.2.1 redirect=x all")
    expect(terms.map(asksDns)).toEqual([true, true, true, true, true, false, true, false])
  })

  test("redirects once, and explains once", () => {
    const faults = (text: string) => parseSpf(text).map(({ fault }) => fault)
    const twice = ["null", '"redirect=" is allowed only once in the record']
    expect(faults("v=spf1 redirect=a.test Redirect=b.test").map(String)).toEqual(twice)
    expect(faults("v=spf1 exp=a.test -all exp=a.test").map(String)[2]).toContain("only once")
  })

  test("names a host without a domain, or not", () => {
    const terms = parseSpf("v=spf1 a:vm mx:vm/24 mx:vm include:vm a:vm.test a")
    expect(terms.map(isBareHost)).toEqual([true, false, true, false, false, false])
  })

  test("says the same as another one, whatever its qualifier, case and last dot", () => {
    const [term] = parseSpf("v=spf1 ?A:MX.example.test.")
    expect(term && isSameMechanism(term, "a:mx.example.test")).toBe(true)
    expect(term && isSameMechanism(term, "mx:mx.example.test")).toBe(false)
  })
})

describe("mailauth reads records as we do:", () => {
  const judge = async (record: string) => {
    const resolver = async (name: string, type: string) => {
      if (name === "acme.test" && type === "TXT") return [[record]]
      throw Object.assign(new Error("no such name"), { code: "ENOTFOUND" })
    }
    const sender = "a@acme.test"
    const limits = { maxVoidCount: 100, maxResolveCount: 100, strict: true }
    return (await spf({ sender, ip: "192.0.2.9", helo: "h.test", resolver, ...limits })).status
  }
  const twice = ["redirect=a.test redirect=b.test", "exp=a.test -all exp=a.test"]

  // It takes `include=` for a modifier of the future, which nobody means who writes it.
  const broken = BROKEN.map(([term]) => term).filter((term) => !term.startsWith("include="))

  test.each([...broken, ...twice])("%s is no SPF", async (term) => {
    expect((await judge(`v=spf1 ${term}`)).result).toBe("permerror")
  })

  test.each(FINE)("%s is SPF", async (terms) => {
    const { result } = await judge(`v=spf1 ${terms.replace("redirect=h.xn--p1ai", "")} ~all`)
    expect(["pass", "softfail"]).toContain(result)
  })
})

test.each([
  ["include:spf.example.test", true],
  ["a:mx.example.test.", true],
  ["ip4:192.0.2.0/24", true],
  ["ip6:2001:db8::/32", true],
  ["ip4:999.1.1.1", false],
  ["ip4:192.0.2.0/33", false],
  ["ip6:1:2", false],
  ["a:mail", false],
  ["a:192.0.2.1", false],
  ["a:h..test", false],
  ["+a:h.test", false],
  ["exists:%{i}.h.test", false],
  ["all", false],
  ["a:h.test +all", false],
])("%s may be put into the records of others: %p", (mechanism, expected) => {
  expect(ownFault(mechanism) === null).toBe(expected)
})
