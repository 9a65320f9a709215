import { describe, expect, test } from "bun:test"
import { asksDns, isSameMechanism, isSpf, parseSpf } from "../../src/lib/spf"

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

  test.each([
    ["include=example.test", "followed by a colon"],
    ["include:", "needs a value"],
    ["ip4:example.test", "no IPv4"],
    ["ip6:192.0.2.x", "no IPv6"],
    ["all:x", "takes no value"],
    ["iclude:x.test", 'no mechanism "iclude"'],
    ["a:x,", ""],
  ])("%s is told what is wrong with it", (term, told) => {
    if (told) expect(only(term)?.fault).toContain(told)
    else expect(only(term)?.fault).toBeNull()
  })

  test("asks DNS or not", () => {
    const terms = parseSpf("v=spf1 a mx ptr exists:x include:x ip4:192.0.2.1 redirect=x all")
    expect(terms.map(asksDns)).toEqual([true, true, true, true, true, false, true, false])
  })

  test("says the same as another one, whatever its qualifier, case and last dot", () => {
    const [term] = parseSpf("v=spf1 ?A:MX.example.test.")
    expect(term && isSameMechanism(term, "a:mx.example.test")).toBe(true)
    expect(term && isSameMechanism(term, "mx:mx.example.test")).toBe(false)
  })
})
