import { describe, expect, test } from "bun:test"
import { mailTo, RAW } from "../../contracts/email-provider"
import { policyHost } from "../../fakes/policy-host"
import { selfSigned } from "../../fakes/smtp-certificate"
import { postfixReceiver, withoutReceiver } from "../../harness/postfix-receiver"
import { a, directOn, mx, patient, txt } from "./direct-fixture"

const NAMES = {
  "MX b.test": mx([10, "mx.b.test"]),
  "MX c.test": mx([10, "mx.b.test"]),
  "A mx.b.test": a("127.0.0.1"),
}

describe.skipIf(withoutReceiver())("a real Postfix, found by MX,", () => {
  test("takes a mail over STARTTLS, and has the very bytes in its mailbox", async () => {
    await using receiver = await postfixReceiver(["ann@b.test", "kim@b.test", "sam@c.test"])
    await using it = await directOn(NAMES, { port: receiver.port, timeouts: {} })

    const outcome = await it.send("ann@b.test", "kim@b.test", "nobody@b.test", "sam@c.test")
    expect(outcome).toMatchObject({
      status: "delivered",
      reply: { mx: "mx.b.test", tls: "TLSv1.3", smtp_code: 250 },
    })
    expect(outcome.others).toMatchObject([
      { address: "kim@b.test", status: "delivered" },
      {
        address: "nobody@b.test",
        status: "bounced",
        bounce_subtype: "NoEmail",
        reply: { smtp_code: 550, enhanced_code: "5.1.1" },
      },
      { address: "sam@c.test", status: "delivered" },
    ])
    for (const address of ["ann@b.test", "kim@b.test", "sam@c.test"]) {
      const [stored = ""] = await receiver.mails(address, 1)
      expect(stored).toContain("Return-Path: <bell@example.test>")
      expect(stored.replaceAll("\n", "\r\n").trimEnd()).toEndWith(RAW.trimEnd())
    }
    expect(receiver.log()).toContain("TLS connection established from")
  })

  test("takes two hundred over a few connections", async () => {
    await using receiver = await postfixReceiver(["ann@b.test"])
    await using it = await directOn(NAMES, { port: receiver.port, timeouts: {} })
    const provider = patient(it.provider)
    const sending = Array.from({ length: 200 }, () => provider.send(mailTo("ann@b.test")))
    const outcomes = await Promise.all(sending)
    expect(outcomes.filter(({ status }) => status !== "delivered")).toEqual([])
    expect(await receiver.mails("ann@b.test", 200)).toHaveLength(200)
    const opened = receiver.log().match(/smtpd\[\d+\]: connect from/g) ?? []
    expect(opened.length).toBeLessThanOrEqual(6) // five at a time, and one that looked whether it is up
  })

  test("is believed under MTA-STS with its own certificate, and not with another authority", async () => {
    await using receiver = await postfixReceiver(["ann@b.test"])
    const authority = selfSigned("mta-sts.b.test")
    const body = "version: STSv1\nmode: enforce\nmx: mx.b.test\nmax_age: 86400\n"
    using host = policyHost(authority, () => ({ body }))
    const names = {
      ...NAMES,
      "A mta-sts.b.test": a("127.0.0.1"),
      "TXT _mta-sts.b.test": txt("v=STSv1; id=1;"),
    }
    const options = { port: receiver.port, timeouts: {}, sts: { port: host.port } }
    await using trusting = await directOn(names, {
      ...options,
      ca: `${authority.cert}\n${receiver.certificate}`,
    })
    expect(await trusting.send("ann@b.test")).toMatchObject({
      status: "delivered",
      reply: { tls: "TLSv1.3" },
    })
    await using other = await directOn(names, { ...options, ca: authority.cert })
    expect((await other.send("ann@b.test")).status).toBe("retry")
    expect(await receiver.mails("ann@b.test", 1)).toHaveLength(1)
  })
})
