import { expect, test } from "bun:test"
import { DnsError, type Resolver } from "../../src/core/dns"
import { keyOf } from "../../src/inbound/dns-answers"
import { type DnsAsker, openDnsAsker } from "../../src/inbound/dns-asker"

/** A resolver of the test's own for TXT questions; others are not asked here. */
const resolving = (txt: Resolver["txt"]) => ({ txt }) as Resolver
const texts = (count: number) =>
  Array.from({ length: count }, (_, number) => ({ name: `n${number}.test`, type: "TXT" as const }))

async function txt(asker: DnsAsker, name: string) {
  const question = { name, type: "TXT" } as const
  await asker.ask([question])
  return asker.answers[keyOf(question)]
}

test("each name is asked once, ten at a time, and 200 at most", async () => {
  let open = 0
  let most = 0
  const names: string[] = []
  const dns = resolving(async (name) => {
    names.push(name)
    open += 1
    most = Math.max(most, open)
    await Bun.sleep(1)
    open -= 1
    return [[name]]
  })
  const asker = openDnsAsker(dns, 10_000)
  await Promise.all([asker.ask(texts(250)), asker.ask(texts(250)), txt(asker, "N1.test")])
  asker.close()
  expect(names).toHaveLength(200)
  expect(new Set(names).size).toBe(200)
  expect(most).toBe(10)
  expect(asker.answers["TXT n199.test"]).toEqual({ rows: [["n199.test"]] })
  expect(asker.answers["TXT n200.test"]).toEqual({
    unknown: "the mail asks for more than 200 names",
  })
})

test("what has no answer in time, or a failed one, is not known; a bad name has no records", async () => {
  const dns = resolving((name) => {
    if (name === "silent.test") return new Promise(() => undefined)
    return Promise.reject(new DnsError("10.0.0.1: SERVFAIL", name !== "bad name.test"))
  })
  const asker = openDnsAsker(dns, 50)
  expect(await txt(asker, "broken.test")).toEqual({ unknown: "no name server gave an answer" })
  expect(await txt(asker, "bad name.test")).toEqual({ rows: [] })
  expect(await txt(asker, "silent.test")).toEqual({ unknown: "no answer in 50 ms" })
  expect(await txt(asker, "later.test")).toEqual({ unknown: "no answer in 50 ms" })
  asker.close()
  expect(keyOf({ name: "Later.TEST", type: "TXT" })).toBe("TXT later.test")
})

test("a mistake of ours is not taken for an answer", async () => {
  const asker = openDnsAsker(
    resolving(() => Promise.reject(new TypeError("wrong"))),
    1_000,
  )
  expect(txt(asker, "a.test")).rejects.toThrow("wrong")
  asker.close()
})
