import { describe, expect, test } from "bun:test"
import { evaluateDmarc } from "../../src/inbound/dmarc"
import type { DnsAnswer } from "../../src/inbound/dns-answers"
import type { SpfResult } from "../../src/inbound/sender-policy"
import type { DkimResult } from "../../src/inbound/signatures"

const spf = (result: SpfResult["result"], domain: string): SpfResult => ({
  result,
  domain,
})
const dkim = (result: DkimResult["result"], domain: string): DkimResult => ({
  result,
  domain,
  selector: "s",
})

interface Case {
  /** By name; a name without a record has none, `?` does not answer. */
  records: Record<string, string | string[]>
  from?: string[]
  fields?: number
  spf?: SpfResult
  dkim?: DkimResult[]
}

const NOBODY = spf("none", "elsewhere.test")

async function judge({ records, from = ["example.com"], fields = 1, ...known }: Case) {
  const asked: string[] = []
  const lookUp = async (name: string): Promise<DnsAnswer> => {
    asked.push(name)
    const found = records[name] ?? []
    if (found === "?") return { unknown: "SERVFAIL" }
    return { rows: [found].flat().map((text) => [text]) }
  }
  const authors = { fields, domains: from, is_cut: false }
  const result = await evaluateDmarc(authors, { spf: NOBODY, dkim: [], ...known }, lookUp)
  return { ...result, asked }
}

const REJECT = { "_dmarc.example.com": "v=DMARC1; p=reject" }
const own = dkim("pass", "example.com")

describe("a policy", () => {
  test("is asked for at the domain, then at the domain that was registered", async () => {
    const { asked, ...result } = await judge({ records: REJECT, from: ["a.b.example.com"] })
    expect(asked).toEqual(["_dmarc.a.b.example.com", "_dmarc.example.com"])
    expect(result).toMatchObject({ result: "fail", policy: "reject", policy_domain: "example.com" })
    expect((await judge({ records: REJECT })).asked).toEqual(["_dmarc.example.com"])
  })

  test("of the registered domain may have a part for subdomains", async () => {
    const records = { "_dmarc.example.com": "v=DMARC1; p=reject; sp=quarantine" }
    expect(await judge({ records })).toMatchObject({ policy: "reject" })
    expect(await judge({ records, from: ["a.example.com"] })).toMatchObject({
      policy: "quarantine",
    })
  })

  const values: [string, { policy: string | null; percent?: number; result: string }][] = [
    ["v=DMARC1; p=none; pct=20", { policy: "none", percent: 20, result: "fail" }],
    ["v=DMARC1; p=reject; pct=101", { policy: "reject", percent: 100, result: "fail" }],
    ["v=DMARC1; p=REJECT", { policy: "reject", result: "fail" }],
    ["v=DMARC1; p=reject; t=y", { policy: "quarantine", result: "fail" }],
    ["v=DMARC1; p=quarantine; t=y", { policy: "none", result: "fail" }],
    ["v=DMARC1; p=drop", { policy: null, result: "none" }],
    ["v=DMARC1; p=drop; rua=mailto:a@b.test", { policy: "none", result: "fail" }],
    ["v=DMARC1; p=reject; sp=drop; rua=mailto:a@b.test", { policy: "none", result: "fail" }],
    ["v=DMARC1", { policy: null, result: "none" }],
    ["p=reject; v=DMARC1", { policy: null, result: "none" }],
    ["v=dmarc1; p=reject", { policy: null, result: "none" }],
  ]
  test.each(values)("%s", async (text, expected) => {
    expect(await judge({ records: { "_dmarc.example.com": text } })).toMatchObject(expected)
  })

  test("that stands there twice is none", async () => {
    const two = { "_dmarc.example.com": ["v=DMARC1; p=reject", "v=DMARC1; p=none"] }
    expect(await judge({ records: two })).toMatchObject({ result: "none", policy: null })
    const beside = { "_dmarc.example.com": ["another text", "v=DMARC1; p=reject"] }
    expect(await judge({ records: beside })).toMatchObject({ result: "fail", policy: "reject" })
  })

  test("that DNS does not tell leaves the result open, even where a signature fits", async () => {
    const records = { "_dmarc.example.com": "?" }
    expect(await judge({ records, dkim: [own] })).toMatchObject({ result: "temperror" })
  })
})

describe("what speaks for the author:", () => {
  const strict = { "_dmarc.example.com": "v=DMARC1; p=reject; adkim=s; aspf=s" }

  const fitting: [string, Partial<Case>, string, string][] = [
    ["a signature of the domain", { dkim: [own] }, "pass", "pass"],
    ["a signature of a subdomain", { dkim: [dkim("pass", "mail.example.com")] }, "pass", "fail"],
    ["a signature of another", { dkim: [dkim("pass", "example.org")] }, "fail", "fail"],
    ["a wrong signature", { dkim: [dkim("fail", "example.com")] }, "fail", "fail"],
    ["a wrong and a right one", { dkim: [dkim("fail", "example.com"), own] }, "pass", "pass"],
    ["an open signature", { dkim: [dkim("temperror", "example.com")] }, "temperror", "temperror"],
    ["an open one of another", { dkim: [dkim("temperror", "example.org")] }, "fail", "fail"],
    ["an open and a right one", { dkim: [dkim("temperror", "example.com"), own] }, "pass", "pass"],
    ["SPF of the domain", { spf: spf("pass", "Example.COM") }, "pass", "pass"],
    ["SPF of a subdomain", { spf: spf("pass", "bounce.example.com") }, "pass", "fail"],
    ["SPF of another", { spf: spf("pass", "example.org") }, "fail", "fail"],
    ["a softfail of SPF", { spf: spf("softfail", "example.com") }, "fail", "fail"],
    ["SPF without an answer", { spf: spf("temperror", "example.com") }, "temperror", "temperror"],
  ]
  test.each(fitting)("%s", async (_, known, relaxed, exact) => {
    expect((await judge({ records: REJECT, ...known })).result).toBe(relaxed as never)
    expect((await judge({ records: strict, ...known })).result).toBe(exact as never)
  })

  test("neighbours under one public suffix do not speak for each other", async () => {
    const from = ["ann.github.io"]
    const records = { "_dmarc.ann.github.io": "v=DMARC1; p=reject" }
    const by = (domain: string) => judge({ records, from, dkim: [dkim("pass", domain)] })
    expect((await by("bob.github.io")).result).toBe("fail")
    expect((await by("mail.ann.github.io")).result).toBe("pass")
  })
})

describe("several authors", () => {
  const records = { ...REJECT, "_dmarc.example.org": "v=DMARC1; p=none" }

  test("are judged one by one, and the strictest failure counts", async () => {
    const from = ["example.org", "example.com"]
    expect(await judge({ records, from })).toMatchObject({ domain: "example.com", result: "fail" })
    const one = await judge({ records, from, dkim: [own] })
    expect(one).toMatchObject({ domain: "example.org", result: "fail", policy: "none" })
    const both = await judge({ records, from, dkim: [own, dkim("pass", "example.org")] })
    expect(both.result).toBe("pass")
  })

  test("in several fields never pass, and nothing is asked", async () => {
    const result = await judge({ records, fields: 2, dkim: [own] })
    expect(result).toMatchObject({ result: "fail", policy: "reject", asked: [] })
  })

  test("of more than five domains fail unasked", async () => {
    const from = Array.from({ length: 6 }, (_, number) => `d${number}.test`)
    expect(await judge({ records, from })).toMatchObject({ result: "fail", asked: [] })
  })

  test("none at all has no result", async () => {
    expect(await judge({ records, from: [] })).toMatchObject({ result: "none", domain: "" })
  })
})
