import { describe, expect, test } from "bun:test"
import { type DnsRecord, zonefile } from "../../src/domains/domain-record"
import { PLACE } from "../harness/service"
import { sharedService } from "../harness/shared-service"
import { addDomain } from "./acme"
import { readHcl } from "./hcl"

const service = await sharedService({ domains: { targets: PLACE } })

describe("records as Terraform", () => {
  test("are cloudflare_dns_record of provider 5, which is named as required, one for each record", async () => {
    const project = await service.project()
    const domain = await addDomain(project, { receiving: true, tracking_subdomain: "links" })
    const path = `/v1/domains/${domain.id}/zonefile?format=terraform`
    const [terraform, variable, ...resources] = readHcl((await project.get(path)).text)
    expect(terraform).toMatchObject({ type: "terraform", labels: [], attributes: {} })
    expect(terraform?.blocks).toEqual([
      {
        type: "required_providers",
        labels: [],
        attributes: { cloudflare: { source: "cloudflare/cloudflare", version: "~> 5.0" } },
        blocks: [],
      },
    ])
    expect(variable).toMatchObject({ type: "variable", labels: ["zone_id"] })
    expect(resources.map(({ type, labels }) => [type, labels[0]])).toEqual(
      Array.from({ length: 7 }, () => ["resource", "cloudflare_dns_record"]),
    )
    const names = resources.map(({ labels }) => labels[1])
    expect(new Set(names).size).toBe(7)
    const records = domain.dns_records as unknown as DnsRecord[]
    expect(resources.map(({ attributes }) => attributes)).toEqual(
      records.map(({ host, type, value, ttl, priority }) => ({
        zone_id: { ref: "var.zone_id" },
        name: host,
        type,
        content: value,
        ttl,
        ...(priority !== null && { priority }),
      })),
    )
  })

  test("keep what would begin a template, a quotation mark and a backslash as they are", () => {
    const value = `a "$\{b}" %{c} \\ $d`
    const record = { purpose: "spf", type: "TXT", host: "a.test", value, priority: null, ttl: 60 }
    const text = zonefile("a.test", [record as DnsRecord], "terraform")
    expect(readHcl(text).at(-1)?.attributes.content).toBe(value)
  })
})

test.each([
  ["a template that is not escaped", `a "b" {\n  c = "$\{d}"\n}\n`],
  ["a block on one line with an attribute behind it", 'a "b" { c = 1 }\n'],
  ["an attribute twice", "a {\n  c = 1\n  c = 2\n}\n"],
  ["a block that is not closed", "a {\n"],
  ["two attributes in a line", "a {\n  c = 1 d = 2\n}\n"],
])("this reader of HCL refuses %s", (_, text) => {
  expect(() => readHcl(text)).toThrow()
})
