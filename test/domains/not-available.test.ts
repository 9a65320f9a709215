import { describe, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { domains } from "../../src/domains/tables"
import { refusal } from "../harness/client"
import { sharedService } from "../harness/shared-service"
import { addDomain, type DnsRecord, freshName, read } from "./acme"

/** The server that receives mail does not run. */
const service = await sharedService()
const path = "/v1/domains"

const CASES = [["receiving", { receiving: true }, { receiving: false }]] as const

describe.each(CASES)("%s, for a server that does not run yet,", (field, on, off) => {
  const codes = (answer: { body: { error: { details: { fields: object[] } } } }) =>
    answer.body.error.details.fields

  test("is refused when a domain is added and when it is changed; to do without is allowed", async () => {
    const project = await service.project()
    const refused = await project.post(path, { domain: freshName(), ...on })
    expect(refusal(refused)).toEqual([422, "validation_error"])
    expect(codes(refused)).toMatchObject([{ path: field, code: "not_available" }])
    expect((await project.get(path)).body.data).toEqual([])

    const domain = await addDomain(project, off)
    const again = await project.call("PATCH", `${path}/${domain.id}`, { body: on })
    expect(refusal(again)).toEqual([422, "validation_error"])
    expect(codes(again)).toMatchObject([{ path: field, code: "not_available" }])
    expect((await project.call("PATCH", `${path}/${domain.id}`, { body: off })).status).toBe(200)
  })

  test("has no record, though it was switched on before", async () => {
    const project = await service.project()
    const domain = await addDomain(project)
    await service.store.tx((tx) => tx.update(domains).set(on).where(eq(domains.id, domain.id)))
    const purposes = (records: DnsRecord[]) => records.map(({ purpose }) => purpose)
    const expected = ["verification", "spf", "dkim", "dmarc", "return_path"]
    expect(purposes((await read(project, domain)).dns_records)).toEqual(expected)
    const zone = await project.get(`${path}/${domain.id}/zonefile`)
    expect(zone.text.match(/\tIN\t(MX|CNAME)\t/g)).toEqual(["\tIN\tMX\t"]) // the return path's
  })
})
