import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { and, asc, eq } from "drizzle-orm"
import { dkimKeys } from "../../src/domains/tables"
import { movableClock } from "../harness/clock"
import { type Knot, noKnot, startKnot } from "../harness/knot"
import { PLACE, type TestService, testService } from "../harness/service"
import { ALL, addDomain, check, type Domain, lines, read } from "./acme"
import { runDue } from "./background"
import { netOf } from "./subject"

const clock = movableClock()
let knot: Knot
let service: TestService

describe.skipIf(noKnot)("an Ed25519 key that is published", () => {
  beforeAll(async () => {
    knot = await startKnot()
    const targets = { ...PLACE, ed25519: true }
    service = await testService({ domains: { net: netOf([knot.address]), targets } })
  })
  afterAll(async () => {
    await service[Symbol.asyncDispose]()
    await knot[Symbol.asyncDispose]()
  })

  const states = async ({ id }: Domain) => {
    const keys = service.store.read.select().from(dkimKeys).where(eq(dkimKeys.domain_id, id))
    const rows = await keys.orderBy(asc(dkimKeys.id))
    return rows.map(({ selector, state }) => `${selector} ${state}`)
  }

  test("signs once its record is seen, and stops when it is gone; nothing hangs on it", async () => {
    const project = await service.project()
    const domain = await addDomain(project)
    expect(domain.dkim_selectors).toEqual(["svc1", "svc1-ed"])
    const record = domain.dns_records.find(({ host }) => host.startsWith("svc1-ed."))
    expect(record).toMatchObject({ required: false, type: "TXT" })
    expect(record?.value).toMatch(/^v=DKIM1; k=ed25519; p=[A-Za-z0-9+/]{43}=$/)

    const four = lines(domain, ALL)
    await knot.serve(domain.domain, four)
    expect((await check(project, domain)).body.data.status).toBe("verified")
    expect(await states(domain)).toEqual(["svc1 active", "svc1-ed pending"])

    await knot.serve(domain.domain, [...four, `svc1-ed._domainkey TXT "${record?.value}"`])
    clock.advance({ seconds: 86_401 })
    await runDue(service)
    expect(await states(domain)).toEqual(["svc1 active", "svc1-ed active"])

    await knot.serve(domain.domain, four)
    clock.advance({ seconds: 86_401 })
    await runDue(service)
    expect(await states(domain)).toEqual(["svc1 active", "svc1-ed pending"])
    expect(await read(project, domain)).toMatchObject({ status: "verified", warning: null })
  })

  test("is followed by another one together with RSA", async () => {
    const project = await service.project()
    const domain = await addDomain(project)
    const { body } = await project.post(`/v1/domains/${domain.id}/rotate-dkim`, { selector: "S9" })
    expect(body.data.dkim_selectors).toEqual(["svc1", "svc1-ed", "s9", "s9-ed"])
    await knot.serve(
      domain.domain,
      (body.data as Domain).dns_records
        .filter(({ type }) => type === "TXT")
        .map(({ host, value }) => `${host}. TXT "${value}"`),
    )
    await check(project, domain)
    expect(await states(domain)).toEqual([
      "svc1 retired",
      "svc1-ed retired",
      "s9 active",
      "s9-ed active",
    ])
    expect((await read(project, domain)).status).toBe("verified")
  })

  test("never shares a name with another key", async () => {
    const project = await service.project()
    const domain = await addDomain(project, { dkim_selector: "x-ed" })
    const path = `/v1/domains/${domain.id}/rotate-dkim`
    const refused = await project.post(path, { selector: "x" })
    expect([refused.status, refused.body.error.details.reason]).toEqual([409, "selector_taken"])
    // A companion that was made and never published, and whose selector seems to be free.
    await service.store.tx((tx) =>
      tx
        .update(dkimKeys)
        .set({ selector: "svc1-ed" })
        .where(and(eq(dkimKeys.domain_id, domain.id), eq(dkimKeys.algorithm, "ed25519"))),
    )
    const { body } = await project.post(path)
    expect(body.data.dkim_selectors).toEqual(["x-ed", "svc1-ed", "svc2", "svc2-ed"])
  })
})
