import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { checkRecords } from "../../src/domains/check"
import type { RecordChecks } from "../../src/domains/tables"
import { type Knot, noKnot, type Records, startKnot } from "../harness/knot"
import { PLACE } from "../harness/service"
import { mine, txt } from "./mistakes/mistake"
import { netOf, rightRecords, testDomain, testKey } from "./subject"

const mx = (name: string) => `${name} MX 10 ${PLACE.host}.`

describe.skipIf(noKnot)("a record that another name may need is left where it is:", () => {
  let knot: Knot
  let public_key = ""

  beforeAll(async () => {
    public_key = (await testKey()).public_key
    knot = await startKnot()
  })
  afterAll(() => knot[Symbol.asyncDispose]())

  async function look(domain: string, receiving = true) {
    const row = testDomain(domain, { receiving })
    const key = await testKey()
    return checkRecords(netOf([knot.address]), { row, keys: [key], targets: PLACE })
  }
  const hints = (checks: RecordChecks, ...names: (keyof RecordChecks)[]) =>
    names.map((name) => `${checks[name]?.status}: ${checks[name]?.hint}`)
  const besides = (found: string, host: string) =>
    `missing: There is such a record at ${found}. Leave it, because it may be needed there. Add another one at ${host}.`

  test("the domain above has its own, and the one below gets its own beside it", async () => {
    const parent = rightRecords({ public_key }, { more: [mx("bounce"), mx("@")] })
    await knot.serve("acme.test", parent)
    const before = await look("sub.acme.test")
    expect(hints(before, "spf", "return_path", "receiving")).toEqual([
      besides("bounce.acme.test", "bounce.sub.acme.test"),
      besides("bounce.acme.test", "bounce.sub.acme.test"),
      besides("acme.test", "sub.acme.test"),
    ])
    const child: Records = [txt("bounce.sub", `v=spf1 ${mine} ~all`), mx("bounce.sub"), mx("sub")]
    await knot.serve("acme.test", [...parent, ...child])
    for (const domain of ["acme.test", "sub.acme.test"]) {
      const { spf, return_path, receiving } = await look(domain)
      for (const one of [spf, return_path, receiving]) expect(one?.status).toBe("verified")
    }
  })

  test("mail to the domain itself comes to us, and its bounces do not yet", async () => {
    await knot.serve("mail.test", rightRecords({ public_key }, { more: [mx("@")] }))
    const checks = await look("mail.test")
    expect(checks.receiving?.status).toBe("verified")
    expect(hints(checks, "return_path")).toEqual([besides("mail.test", "bounce.mail.test")])
  })

  test("a key is of one domain, and so is to be moved", async () => {
    await knot.serve("key.test", [txt("svc1._domainkey", `v=DKIM1; k=rsa; p=${public_key}`)])
    const found = hints(await look("sub.key.test", false), "dkim")
    const [right, wrong] = ["svc1._domainkey.sub.key.test", "svc1._domainkey.key.test"]
    expect(found).toEqual([`missing: The record is at ${wrong}. It must be at ${right}.`])
  })
})
