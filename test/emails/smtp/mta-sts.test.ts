import { describe, expect, test } from "bun:test"
import type { AddressInfo } from "node:net"
import { SMTPServer } from "smtp-server"
import { isNamed, parsePolicy } from "../../../src/emails/smtp/mta-sts"
import { policyHost } from "../../fakes/policy-host"
import { selfSigned } from "../../fakes/smtp-certificate"
import { smtpSink } from "../../fakes/smtp-sink"
import { movableClock } from "../../harness/clock"
import { a, directOn, mx, type Names, txt } from "../providers/direct-fixture"

const clock = movableClock()

const ANN = "ann@b.test"
const policy = (mode: string, ...hosts: string[]) =>
  [
    "version: STSv1",
    `mode: ${mode}`,
    ...hosts.map((host) => `mx: ${host}`),
    "max_age: 86400",
    "",
  ].join("\r\n")

/** One authority for everything: it signs itself, and is good for both names. */
const ours = selfSigned("mta-sts.b.test")

/** A domain with a policy, and a mail server with or without a good certificate. */
async function domain(it: { policy: string; certificate?: { key: string; cert: string } }) {
  const said = { policy: it.policy, id: "1", status: 200, type: "text/plain", dns: true }
  const host = policyHost(ours, () => ({ body: said.policy, status: said.status, type: said.type }))
  const tls = it.certificate ?? selfSigned("mx.b.test")
  const server = new SMTPServer({
    ...tls,
    disableReverseLookup: true,
    authOptional: true,
    onData(stream, _session, done) {
      stream.resume()
      stream.on("end", () => done())
    },
  })
  server.on("error", () => {})
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const names: Names = {
    "MX b.test": mx([10, "mx.b.test"]),
    "A mx.b.test": a("127.0.0.1"),
    "A mta-sts.b.test": a("127.0.0.1"),
    "TXT _mta-sts.b.test": () => (said.dns ? txt(`v=STSv1; id=${said.id};`) : "SERVFAIL"),
  }
  const port = (server.server.address() as AddressInfo).port
  const on = await directOn(names, {
    port,
    ca: `${ours.cert}\n${tls.cert}`,
    sts: { port: host.port, known_ms: 0 },
  })
  return {
    ...on,
    said,
    host,
    async [Symbol.asyncDispose]() {
      await on[Symbol.asyncDispose]()
      host[Symbol.dispose]()
      server.close(() => {})
    },
  }
}

describe("a domain that enforces MTA-STS", () => {
  test("is delivered to over TLS with a certificate that is good", async () => {
    await using it = await domain({ policy: policy("enforce", "mx.b.test") })
    expect(await it.send(ANN)).toMatchObject({ status: "delivered", reply: { tls: "TLSv1.3" } })
    expect(it.host.asked()).toBe(1)
    await it.send(ANN)
    expect(it.host.asked()).toBe(1) // the id is the same, so the policy is
    expect(it.policies.kept.get("b.test")).toMatchObject({ mode: "enforce", policy_id: "1" })
  })

  test.each<[what: string, certificate: { key: string; cert: string }]>([
    ["is for another name", selfSigned("other.test", "127.0.0.9")],
  ])("gets nothing where the certificate %s", async (_, certificate) => {
    await using it = await domain({ policy: policy("enforce", "mx.b.test"), certificate })
    const outcome = await it.send(ANN)
    expect(outcome).toMatchObject({ status: "retry", bounce_subtype: null })
    expect(outcome).not.toHaveProperty("fault") // it waits for the domain, whoever else could go
    expect(outcome.reason).toMatch(/altnames|certificate|name/i)
  })

  test("gets nothing where nobody trusted signed the certificate", async () => {
    await using it = await domain({ policy: policy("enforce", "mx.b.test") })
    await using plain = await directOn(
      {
        "A b.test": a("127.0.0.1"),
        "A mta-sts.b.test": a("127.0.0.1"),
        "TXT _mta-sts.b.test": txt("v=STSv1; id=1"),
      },
      { sts: { port: it.host.port, known_ms: 0 }, port: 1, ca: ours.cert },
    )
    expect((await plain.send(ANN)).status).toBe("retry")
  })

  test("gets nothing at a host that offers no TLS, or that the policy does not name", async () => {
    using sink = smtpSink()
    using host = policyHost(ours, () => ({ body: policy("enforce", "mx.b.test") }))
    const names: Names = {
      "MX b.test": mx([10, "mx.b.test"]),
      "MX c.test": mx([10, "elsewhere.test"]),
      "A mx.b.test": a("127.0.0.1"),
      "A mta-sts.b.test": a("127.0.0.1"),
      "TXT _mta-sts.b.test": txt("v=STSv1; id=7"),
    }
    const options = { port: sink.port, ca: ours.cert, sts: { port: host.port, known_ms: 0 } }
    await using it = await directOn(names, options)
    const open = await it.send(ANN)
    expect(open).toMatchObject({ status: "retry", reason: expect.stringContaining("STARTTLS") })
    expect(open).not.toHaveProperty("fault")

    for (const addresses of [
      ["127.0.0.1", "127.0.0.9"],
      ["127.0.0.9", "127.0.0.1"],
    ]) {
      await using half = await directOn({ ...names, "A mx.b.test": a(...addresses) }, options)
      const outcome = await half.send(ANN) // nobody listens at one of them
      expect(outcome.status).toBe("retry")
      expect(outcome).not.toHaveProperty("fault")
    }

    const other = { ...names, "MX b.test": mx([10, "elsewhere.test"]) }
    await using another = await directOn(other, options)
    const unnamed = await another.send(ANN)
    expect(unnamed).toMatchObject({ status: "retry", reason: expect.stringContaining("MTA-STS") })
    expect(unnamed).not.toHaveProperty("fault")
    expect(sink.received).toEqual([])
  })

  test("keeps its policy over silence and broken hosts until it runs out", async () => {
    const certificate = selfSigned("other.test", "127.0.0.9")
    await using it = await domain({ policy: policy("enforce", "mx.b.test"), certificate })
    expect((await it.send(ANN)).status).toBe("retry")
    it.said.dns = false
    clock.advance({ seconds: 3600 })
    expect((await it.send(ANN)).status).toBe("retry")
    it.said.dns = true
    it.said.id = "2"
    it.said.status = 500
    clock.advance({ seconds: 3600 })
    expect((await it.send(ANN)).status).toBe("retry")
    clock.advance({ seconds: 86_400 })
    expect((await it.send(ANN)).status).toBe("delivered") // nothing is demanded any more
  })

  test("is asked for a new policy when the id changes", async () => {
    const certificate = selfSigned("other.test", "127.0.0.9")
    await using it = await domain({ policy: policy("enforce", "mx.b.test"), certificate })
    expect((await it.send(ANN)).status).toBe("retry")
    it.said.id = "2"
    it.said.policy = policy("none")
    clock.advance({ seconds: 3600 })
    expect((await it.send(ANN)).status).toBe("delivered")
    expect(it.host.asked()).toBe(2)
  })
})

test.each<[what: string, change: { policy?: string; status?: number; type?: string }]>([
  ["only tests", { policy: policy("testing", "mx.b.test") }],
  ["answers 404", { status: 404 }],
  ["redirects", { status: 302 }],
  ["serves HTML", { type: "text/html" }],
  ["serves too much", { policy: policy("enforce", "mx.b.test") + "x".repeat(70_000) }],
  ["serves another version", { policy: policy("enforce", "mx.b.test").replace("STSv1", "STSv2") }],
])("a policy host that %s demands nothing", async (_, change) => {
  const certificate = selfSigned("other.test", "127.0.0.9")
  await using it = await domain({ policy: policy("enforce", "mx.b.test"), certificate })
  Object.assign(it.said, change)
  expect((await it.send(ANN)).status).toBe("delivered")
})

describe("a policy's text", () => {
  test("is read whatever its line ends, and only with all it needs", () => {
    const lines = ["version: STSv1", "mode: enforce", "mx: *.B.test", "max_age: 99999999"]
    const expected = { mode: "enforce", mx: ["*.b.test"], max_age_seconds: 31_557_600 }
    expect(parsePolicy(lines.join("\n"))).toEqual(expected as ReturnType<typeof parsePolicy>)
    expect(parsePolicy(lines.join("\r\n"))).toEqual(expected as ReturnType<typeof parsePolicy>)
    for (const left_out of [0, 1, 2, 3]) {
      expect(parsePolicy(lines.filter((_, n) => n !== left_out).join("\n"))).toBeUndefined()
    }
    expect(parsePolicy("version: STSv1\nmode: none\nmax_age: 60")).toMatchObject({ mx: [] })
  })

  test.each<[string, string, boolean]>([
    ["mx.b.test", "mx.b.test", true],
    ["mx.b.test", "*.b.test", true],
    ["a.mx.b.test", "*.b.test", false],
    ["b.test", "*.b.test", false],
    ["mx.c.test", "mx.b.test", false],
  ])("%s is named by %s: %p", (host, pattern, expected) => {
    expect(isNamed(host, { mx: [pattern] })).toBe(expected)
  })
})
