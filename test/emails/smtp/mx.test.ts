import { describe, expect, test } from "bun:test"
import { emailProviderContract } from "../../contracts/email-provider"
import { smtpSink } from "../../fakes/smtp-sink"
import { quietLog } from "../../harness/quiet"
import { PATIENT } from "../../harness/waits"
import { a, directOn, mx, type Names, patient } from "../providers/direct-fixture"

const ANN = "ann@b.test"

describe("a domain", () => {
  test("is served by the host that its MX names", async () => {
    using sink = smtpSink()
    await using it = await directOn(
      { "MX b.test": mx([10, "mx.b.test"]), "A mx.b.test": a("127.0.0.1") },
      { port: sink.port },
    )
    const outcome = await it.send(ANN)
    expect(outcome).toMatchObject({
      status: "delivered",
      provider: "direct",
      reply: { mx: "mx.b.test", smtp_code: 250, tls: null },
    })
    expect(sink.received).toHaveLength(1)
    expect(sink.lines).toContain("EHLO mail.belfry.test")
  })

  test("without MX stands for itself", async () => {
    using sink = smtpSink()
    await using it = await directOn({ "A b.test": a("127.0.0.1") }, { port: sink.port })
    expect(await it.send(ANN)).toMatchObject({ status: "delivered", reply: { mx: "b.test" } })
  })

  test("is asked for at its hosts in the order of preference, and at every address", async () => {
    using second = smtpSink({}, { hostname: "127.0.0.3" })
    using first = smtpSink(
      { greeting: "421 4.3.2 not now" },
      { hostname: "127.0.0.2", port: second.port },
    )
    const names: Names = {
      "MX b.test": mx([20, "two.b.test"], [10, "one.b.test"], [5, "gone.b.test"]),
      "A one.b.test": a("127.0.0.9", "127.0.0.2"), // nobody listens at the first
      "A two.b.test": a("127.0.0.3"),
    }
    await using it = await directOn(names, { port: second.port })
    const outcome = await it.send(ANN)
    expect(outcome).toMatchObject({ status: "delivered", reply: { mx: "two.b.test" } })
    expect(outcome.transcript.filter((line) => /^\* 127/.test(line))).toEqual(
      ["127.0.0.9", "127.0.0.2", "127.0.0.3"].map((address) => `* ${address}:${second.port}`),
    )
    expect(first.connections()).toBe(1)
  })

  test("with hosts of one preference gets them by chance", async () => {
    using sink = smtpSink()
    const names: Names = {
      "MX b.test": mx([10, "one.b.test"], [10, "two.b.test"]),
      "MX c.test": mx([10, "one.b.test"], [10, "two.b.test"]),
      "A one.b.test": a("127.0.0.1"),
      "A two.b.test": a("127.0.0.1"),
    }
    const lots = [0.9, 0.1, 0.1, 0.9]
    await using it = await directOn(names, { port: sink.port, random: () => lots.shift() ?? 0 })
    expect((await it.send(ANN)).reply.mx).toBe("two.b.test")
    expect((await it.send("ann@c.test")).reply.mx).toBe("one.b.test")
  })

  test("whose best host refuses for good is not asked at the next one after MAIL", async () => {
    using sink = smtpSink({ RCPT: "550 5.1.1 nobody" })
    const names: Names = {
      "MX b.test": mx([10, "one.b.test"], [20, "two.b.test"]),
      "A one.b.test": a("127.0.0.1"),
      "A two.b.test": a("127.0.0.1"),
    }
    await using it = await directOn(names, { port: sink.port })
    expect(await it.send(ANN)).toMatchObject({ status: "bounced", bounce_subtype: "NoEmail" })
    expect(sink.connections()).toBe(1)
  })

  test.each<[what: string, names: Names, expected: object]>([
    [
      "says that it takes no mail",
      { "MX b.test": mx([0, "."]), "A b.test": a("127.0.0.1") },
      { status: "bounced", bounce_subtype: "NoEmail", reply: { enhanced_code: "5.1.10" } },
    ],
    [
      "does not exist",
      {},
      { status: "bounced", bounce_subtype: "NoEmail", reply: { enhanced_code: "5.1.2" } },
    ],
    [
      "names a host without an address",
      { "MX b.test": mx([10, "mx.b.test"]) },
      { status: "bounced", bounce_subtype: "General", reply: { enhanced_code: "5.4.4" } },
    ],
    [
      "names a host at a private address",
      { "MX b.test": mx([10, "mx.b.test"]), "A mx.b.test": a("10.0.0.1") },
      { status: "bounced", bounce_subtype: "PolicyRejected", reply: { enhanced_code: "5.4.4" } },
    ],
    [
      "names a host at the address of a cloud's metadata",
      { "MX b.test": mx([10, "mx.b.test"]), "A mx.b.test": a("169.254.169.254") },
      { status: "bounced", bounce_subtype: "PolicyRejected" },
    ],
    ["cannot be asked for: SERVFAIL", { "MX b.test": "SERVFAIL" }, { status: "retry" }],
    ["cannot be asked for: silence", { "MX b.test": "silence" }, { status: "retry" }],
    [
      "names a host that cannot be asked for",
      { "MX b.test": mx([10, "mx.b.test"]), "A mx.b.test": "SERVFAIL" },
      { status: "retry" },
    ],
    [
      "names a host that is gone and one that cannot be asked for",
      {
        "MX b.test": mx([10, "gone.b.test"], [20, "mx.b.test"]),
        "A mx.b.test": "SERVFAIL",
        "AAAA mx.b.test": "SERVFAIL",
      },
      { status: "retry" },
    ],
  ])("that %s: as it should", async (_, names, expected) => {
    await using it = await directOn(names)
    const outcome = await it.send(ANN)
    expect(outcome).toMatchObject({ ...expected, others: [] })
    expect(outcome.reason).toBeTruthy()
    expect(outcome.reply).toMatchObject({ smtp_code: null, mx: null })
  })

  test("at a private address among public ones loses only that one", async () => {
    using sink = smtpSink()
    const names: Names = {
      "MX b.test": mx([10, "mx.b.test"]),
      "A mx.b.test": a("10.0.0.1", "127.0.0.1"),
    }
    await using it = await directOn(names, { port: sink.port })
    expect((await it.send(ANN)).status).toBe("delivered")
  })

  test("on the loopback is refused where nothing permits it", async () => {
    using sink = smtpSink()
    const names: Names = { "A b.test": a("127.0.0.1") }
    await using it = await directOn(names, { port: sink.port, allow_private: [] })
    expect(await it.send(ANN)).toMatchObject({
      status: "bounced",
      bounce_subtype: "PolicyRejected",
    })
    expect(sink.connections()).toBe(0)
  })

  test("is asked for once a minute, not once a message", async () => {
    using sink = smtpSink()
    const names: Names = { "MX b.test": mx([10, "mx.b.test"]), "A mx.b.test": a("127.0.0.1") }
    await using it = await directOn(names, { port: sink.port })
    await it.send(ANN)
    const asked = it.asked()
    for (let n = 0; n < 5; n++) expect((await it.send(ANN)).status).toBe("delivered")
    expect(it.asked()).toBe(asked)
    expect(sink.connections()).toBe(1) // and one connection serves them all
  })
})

describe("one message", () => {
  test("goes once to each domain, to all of its recipients", async () => {
    using sink = smtpSink({
      RCPT: (line) => (line.includes("no@") ? "550 5.1.1 nobody" : undefined),
    })
    const names: Names = {
      "A b.test": a("127.0.0.1"),
      "A c.test": a("127.0.0.1"),
      "MX d.test": mx([0, "."]),
    }
    await using it = await directOn(names, { port: sink.port })
    const outcome = await it.send("ann@b.test", "kim@c.test", "no@b.test", "sam@B.test", "x@d.test")
    expect(
      [outcome, ...outcome.others].map(({ address: email, status }) => [email, status]),
    ).toEqual([
      ["ann@b.test", "delivered"],
      ["kim@c.test", "delivered"],
      ["no@b.test", "bounced"],
      ["sam@B.test", "delivered"],
      ["x@d.test", "bounced"],
    ])
    expect(sink.received).toHaveLength(2)
    expect(sink.lines.filter((line) => line.startsWith("MAIL"))).toHaveLength(2)
  })
})

test("one domain that breaks takes nothing back from the others", async () => {
  quietLog()
  using sink = smtpSink()
  const names: Names = { "A b.test": a("127.0.0.1"), "A c.test": a("127.0.0.1") }
  const find = async (domain: string) => {
    if (domain === "c.test") throw new Error("the disk is full")
    return undefined
  }
  const policies = { find, keep: async () => {} }
  await using it = await directOn(names, { port: sink.port, policies })
  const outcome = await it.send("kim@c.test", "ann@b.test")
  expect(outcome).toMatchObject({ address: "kim@c.test", status: "retry", code: null })
  expect(outcome.reason).toBe("An internal error stopped the attempt. The log has the reason.")
  expect(outcome.others).toMatchObject([{ address: "ann@b.test", status: "delivered" }])
  await expect(it.send("kim@c.test")).rejects.toThrow("the disk is full")
  expect(await it.send("ann@b.test", "sam@c.test")).toMatchObject({ status: "delivered" })
})

test("who finds no room is held, is told when to come, and keeps nobody else back", async () => {
  using sink = smtpSink()
  using slow = smtpSink({ greeting: "stall" }, { hostname: "127.0.0.2", port: sink.port })
  const names: Names = { "A b.test": a("127.0.0.1"), "A c.test": a("127.0.0.2") }
  const timeouts = { ...PATIENT, greeting: 300 }
  await using it = await directOn(names, { port: sink.port, timeouts })
  const stuck = [it.send("one@c.test"), it.send("two@c.test")]
  while (slow.connections() < 2) await Bun.sleep(1)

  const outcome = await it.send("kim@c.test", "ann@b.test")
  expect(outcome).toMatchObject({ address: "kim@c.test", status: "retry", held: true })
  expect(outcome.reason).toContain("c.test takes at most 2 messages at a time")
  expect(outcome.others).toMatchObject([{ address: "ann@b.test", status: "delivered" }])
  expect(outcome.schedule(1, 0)).toBeLessThanOrEqual(2)
  expect(await Promise.all(stuck)).toMatchObject([{ status: "retry" }, { status: "retry" }])
  const alone = it.send("sam@c.test")
  await expect(alone).rejects.toThrow("c.test is paused: timed out")
})

emailProviderContract("direct", async () => {
  const sink = smtpSink({
    RCPT: (line) => {
      if (line.includes("later@")) return "451 4.2.0 later"
      return line.includes("no@") ? "550 5.1.1 nobody" : undefined
    },
  })
  const it = await directOn(
    { "A 127.0.0.1": a("127.0.0.1"), "MX b.test": mx([10, "127.0.0.1"]) },
    { port: sink.port, per_domain: 100, concurrency: 100 },
  )
  return {
    provider: patient(it.provider),
    addresses: {
      accepted: ANN,
      other: "kim@b.test",
      deferred: "later@b.test",
      refused: "no@b.test",
    },
    success: "delivered",
    received: () => sink.received,
    async [Symbol.asyncDispose]() {
      sink[Symbol.dispose]()
      await it[Symbol.asyncDispose]()
    },
  }
})
