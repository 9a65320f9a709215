import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { checkRecords } from "../../src/domains/check"
import type { DomainRow } from "../../src/domains/expected-records"
import { type Knot, noKnot, type Records, startKnot } from "../harness/knot"
import { PLACE } from "../harness/service"
import { dkimMistakes } from "./mistakes/dkim"
import { spf } from "./mistakes/mistake"
import { othersMistakes } from "./mistakes/others"
import { spfMistakes } from "./mistakes/spf"
import { verificationMistakes } from "./mistakes/verification"
import { netOf, rightRecords, testDomain, testKey } from "./subject"

const MISTAKES = [...verificationMistakes, ...spfMistakes, ...dkimMistakes, ...othersMistakes]

describe.skipIf(noKnot)("a real name server", () => {
  let knot: Knot
  let public_key = ""
  const zoneOf = (at: number) => `case${at}.test`

  beforeAll(async () => {
    public_key = (await testKey()).public_key
    const zones = MISTAKES.map(({ records }, at): [string, Records] => [
      zoneOf(at),
      rightRecords({ public_key }, records(public_key, zoneOf(at))),
    ])
    knot = await startKnot(
      Object.fromEntries([
        ...zones,
        ["right.test", rightRecords({ public_key })],
        ["bare.test", rightRecords({ public_key }, spf("v=spf1 a:vm ~all"))],
      ]),
    )
  })
  afterAll(() => knot[Symbol.asyncDispose]())

  async function look(domain: string, own: Partial<DomainRow> = {}) {
    const key = await testKey()
    return checkRecords(netOf([knot.address]), {
      row: testDomain(domain, own),
      keys: [key],
      targets: PLACE,
    })
  }

  test("nothing is wrong with what is right", async () => {
    const checks = await look("right.test")
    for (const name of ["verification", "spf", "dkim", "dmarc"] as const) {
      expect(checks[name]).toMatchObject({ status: "verified", hint: null, mistake: null })
    }
    expect(checks.return_path).toMatchObject({ status: "missing", mistake: "not_there" })
  })

  test("a host without a domain is right where ours is one, in a private network", async () => {
    const targets = { ...PLACE, mechanisms: ["a:vm"] }
    const subject = { row: testDomain("bare.test"), keys: [], targets }
    expect((await checkRecords(netOf([knot.address]), subject)).spf?.status).toBe("verified")
  })

  describe("a mistake is named when somebody", () => {
    test.each(MISTAKES.map((one, at) => ({ ...one, at })))(
      "$did",
      async ({ at, record, mistake, told, status, row }) => {
        const checks = await look(zoneOf(at), row)
        expect(checks[record]?.mistake).toBe(mistake)
        expect(checks[record]?.hint).toContain(told)
        if (status) expect(checks[record]?.status).toBe(status)
        else expect(checks[record]?.status).not.toBe("verified")
        // Whatever is wrong with one record is not blamed on another.
        const others = (["verification", "spf", "dkim", "dmarc"] as const).filter(
          (name) => name !== record,
        )
        for (const name of others) expect(checks[name]?.status).toBe("verified")
      },
    )
  })

  test("wrong bytes are marked where they begin", async () => {
    const at = MISTAKES.findIndex(({ mistake }) => mistake === "wrong_bytes")
    const { dkim: check } = await look(zoneOf(at))
    expect(check?.difference?.at).toBe(100)
    expect(check?.difference?.expected).toBe(public_key)
    expect(check?.difference?.found.slice(0, 100)).toBe(public_key.slice(0, 100))
  })
})
