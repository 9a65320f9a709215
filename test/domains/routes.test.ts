import { describe, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { now } from "../../src/core/time"
import { dkimKeys, domains } from "../../src/domains/tables"
import { complaints, refusal } from "../harness/client"
import { mail } from "../harness/mail"
import { PLACE } from "../harness/service"
import { sharedService } from "../harness/shared-service"
import { addDomain, type DnsRecord, freshName, read } from "./acme"
import { runDue } from "./background"

/** With the servers that records of received mail and of tracked links lead to. */
const service = await sharedService({ domains: { targets: PLACE } })
const path = "/v1/domains"

const verify = (id: string) =>
  service.store.tx((tx) =>
    tx.update(domains).set({ status: "verified", verified_at: now() }).where(eq(domains.id, id)),
  )

describe("adding", () => {
  test("answers with every record, each with its purpose, host and value", async () => {
    const project = await service.project()
    const wanted = { domain: "Mail.Acme.TEST.", receiving: true, tracking_subdomain: "links" }
    const { status, body } = await project.post(path, wanted)
    expect(status).toBe(201)
    const { data } = body
    expect(data).toMatchObject({
      project_id: project.project_id,
      domain: "mail.acme.test",
      status: "pending",
      records_total: 4,
      records_verified: 0,
      provider_identity_status: "not_required",
      provider_dkim_status: "not_required",
      receiving: true,
      tracking_subdomain: "links",
      return_path: "bounce",
      dkim_selectors: ["svc1"],
      warning: null,
      last_checked_at: null,
      verified_at: null,
      failed_at: null,
    })
    expect(data.verification_token).toMatch(/^[0-9a-f]{32}$/)
    const brief = (data.dns_records as (DnsRecord & { name: string; priority: number })[]).map(
      ({ purpose, type, name, host, required, priority }) =>
        [purpose, type, name, host, required, priority].join(" "),
    )
    expect(brief).toEqual([
      "verification TXT _svc-verify.mail _svc-verify.mail.acme.test true ",
      "spf TXT bounce.mail bounce.mail.acme.test true ",
      "dkim TXT svc1._domainkey.mail svc1._domainkey.mail.acme.test true ",
      "dmarc TXT _dmarc.mail _dmarc.mail.acme.test true ",
      "return_path MX bounce.mail bounce.mail.acme.test false 10",
      "tracking CNAME links.mail links.mail.acme.test false ",
      "receiving MX mail mail.acme.test false 10",
    ])
    const values = data.dns_records.map(({ value }: DnsRecord) => value)
    expect(values[0]).toBe(`svc-domain-verification=${data.verification_token}`)
    expect(values[1]).toBe("v=spf1 a:mx.belfry.test ~all")
    expect(values[2]).toMatch(/^v=DKIM1; k=rsa; p=MII[A-Za-z0-9+/=]{389}$/)
    expect(values[3]).toBe("v=DMARC1; p=none; rua=mailto:dmarc@mail.acme.test")
    expect(values.slice(4)).toEqual([PLACE.host, PLACE.tracking_host, PLACE.host])
  })

  test.each([
    ["an IPv4 address", "192.0.2.1"],
    ["an IPv6 address", "[2001:db8::1]"],
    ["a public suffix", "co.uk"],
    ["a suffix of somebody who gives names away", "github.io"],
    ["one label", "localhost"],
    ["a URL", "https://acme.test"],
    ["an address of mail", "a@acme.test"],
    ["an underscore", "a_b.test"],
    ["an empty label", "a..test"],
    ["a line end", "acme.test\r\n"],
    ["a label that begins with a hyphen", "-a.test"],
    ["a name that is too long for its records", `${"a.".repeat(110)}test`],
    ["the mailbox's own domain", "mailbox.test"],
  ])("refuses %s", async (_, domain) => {
    const project = await service.project()
    const refused = await project.post(path, { domain })
    expect(refusal(refused)).toEqual([422, "validation_error"])
    expect(complaints(refused)).toEqual(["domain"])
  })

  test("takes names outside ASCII, and keeps them as A-labels", async () => {
    const project = await service.project()
    const { body } = await project.post(path, { domain: "Bücher.example" })
    expect(body.data.domain).toBe("xn--bcher-kva.example")
  })

  test("refuses hosts that would shut each other out", async () => {
    const project = await service.project()
    const same = { domain: freshName(), return_path: "m", tracking_subdomain: "m" }
    expect(complaints(await project.post(path, same))).toEqual(["tracking_subdomain"])
    const odd = { domain: freshName(), return_path: "no host", dkim_selector: "a.b" }
    expect(complaints(await project.post(path, odd)).sort()).toEqual([
      "dkim_selector",
      "return_path",
    ])
  })

  test("refuses a second one of the name, and another project's that is verified", async () => {
    const [project, other] = [await service.project(), await service.project()]
    const domain = await addDomain(project)
    const again = await project.post(path, { domain: domain.domain.toUpperCase() })
    expect(refusal(again)).toEqual([409, "conflict"])
    expect(again.body.error.details).toEqual({ reason: "exists", id: domain.id })
    expect((await other.post(path, { domain: domain.domain })).status).toBe(201)
    await verify(domain.id)
    const third = await service.project()
    const refused = await third.post(path, { domain: domain.domain })
    expect(refused.body.error.details).toEqual({ reason: "verified_elsewhere" })
  })

  test("needs a plan for a tracking host", async () => {
    const project = await service.project({ plan: "free" })
    const refused = await project.post(path, { domain: freshName(), tracking_subdomain: "t" })
    expect(refusal(refused)).toEqual([402, "plan_upgrade_required"])
    const { id } = await addDomain(project)
    const change = { body: { tracking_subdomain: "t" } }
    expect(refusal(await project.call("PATCH", `${path}/${id}`, change))[0]).toBe(402)
  })

  test("adds one for the same Idempotency-Key", async () => {
    const project = await service.project()
    const body = { domain: freshName() }
    const headers = { "idempotency-key": "k1" }
    const first = await project.call("POST", path, { body, headers })
    const second = await project.call("POST", path, { body, headers })
    expect([second.status, second.body.data]).toEqual([201, first.body.data])
  })

  test("keeps private keys sealed, and tells none", async () => {
    const project = await service.project()
    const { id } = await addDomain(project)
    const rows = await service.store.read.select().from(dkimKeys).where(eq(dkimKeys.domain_id, id))
    expect(rows.map(({ algorithm, state }) => [algorithm, state]).sort()).toEqual([
      ["ed25519", "pending"],
      ["rsa", "active"],
    ])
    for (const row of rows) {
      expect(row.private_key).not.toContain("PRIVATE")
      const pem = service.parts.secrets.open(row.private_key, `dkim_keys:${row.id}:private_key`)
      expect(pem).toContain("BEGIN PRIVATE KEY")
    }
    expect(JSON.stringify(await read(project, { id }))).not.toContain("private")
  })
})

describe("domains", () => {
  test("are listed by state and by a part of the name", async () => {
    const project = await service.project()
    const [one, two] = [await addDomain(project), await addDomain(project)]
    await verify(two.id)
    const names = async (query: string) =>
      (await project.get(`${path}${query}`)).body.data.map(({ domain }: typeof one) => domain)
    expect(await names("")).toEqual([two.domain, one.domain])
    expect(await names("?status=verified")).toEqual([two.domain])
    expect(await names(`?domain=${one.domain.slice(1, 6)}`)).toContain(one.domain)
    expect((await project.get(`${path}?per_page=1`)).body.meta).toMatchObject({ total: 2 })
  })

  test("are found by a part of the name as people write it, and nothing by what is in no name", async () => {
    const project = await service.project()
    for (const domain of ["bücher.example", "acme.test", "acme.test.example"]) {
      expect((await project.post(path, { domain })).status).toBe(201)
    }
    const names = async (part: string) => {
      const { body } = await project.get(`${path}?domain=${encodeURIComponent(part)}`)
      expect(body.meta.total).toBe(body.data.length)
      return body.data.map(({ domain }: { domain: string }) => domain)
    }
    expect(await names("BÜCHER.ex")).toEqual(["xn--bcher-kva.example"])
    expect(await names(" me.TEST. ")).toEqual(["acme.test.example", "acme.test"])
    expect(await names("test")).toEqual(["acme.test.example", "acme.test"])
    for (const part of ["日本", "%", "a_me", "acme.test/", "a cme", "\u200b"]) {
      expect([part, await names(part)]).toEqual([part, []])
    }
    expect(await names("")).toHaveLength(3)
  })

  test("say that a name is too long for the names of its records", async () => {
    const project = await service.project()
    const domain = `${"abcdefghi.".repeat(24)}example`
    const { body } = await project.post(path, { domain })
    const text =
      "A domain may have at most 180 characters, so that the names of its records fit. It has 247."
    expect(body.error.details.fields).toMatchObject([{ path: "domain", message: text }])
    const fits = `${"abcdefghi.".repeat(17)}ab.example`
    expect((await project.post(path, { domain: fits })).status).toBe(201)
  })

  test("change, and what is not known any more is looked for again", async () => {
    const project = await service.project()
    const { id, domain } = await addDomain(project)
    const body = { receiving: true, return_path: "back", tracking_subdomain: "go" }
    const { data } = (await project.call("PATCH", `${path}/${id}`, { body })).body
    const hosts = data.dns_records.map(({ host }: DnsRecord) => host)
    expect(hosts).toContain(`back.${domain}`)
    expect(hosts).toContain(`go.${domain}`)
    const off = await project.call("PATCH", `${path}/${id}`, { body: { tracking_subdomain: null } })
    expect(off.body.data.tracking_subdomain).toBeNull()
    const none = await project.call("PATCH", `${path}/${id}`, { body: {} })
    expect(none.status).toBe(422)
  })

  test.each([
    ["bind", /^bounce\.\S+\.\t3600\tIN\tTXT\t"v=spf1 a:mx\.belfry\.test ~all"$/m],
    [
      "cloudflare",
      /^bounce\.\S+\.\t3600\tIN\tMX\t10 mx\.belfry\.test\. ; cf_tags=cf-proxied:false$/m,
    ],
    ["terraform", /resource "cloudflare_dns_record" "dkim" \{/],
  ])("come as %s", async (format, expected) => {
    const project = await service.project()
    const { id } = await addDomain(project)
    const answer = await project.get(`${path}/${id}/zonefile?format=${format}`)
    expect([answer.status, answer.text]).toEqual([200, expect.stringMatching(expected)])
    if (format !== "terraform")
      for (const part of answer.text.match(/"[^"]*"/g) ?? []) {
        expect(part.length).toBeLessThanOrEqual(257)
      }
    expect((await project.get(`${path}/${id}/zonefile?format=xml`)).status).toBe(422)
  })
})

describe("sending", () => {
  test("needs a verified domain, of this very project", async () => {
    const [project, other] = [await service.project(), await service.project()]
    const { id, domain } = await addDomain(project)
    const letter = mail({ from: `a@${domain}` })
    expect(refusal(await project.post("/v1/emails", letter))).toEqual([400, "domain_not_verified"])
    await verify(id)
    expect((await project.post("/v1/emails", letter)).status).toBe(201)
    expect(refusal(await other.post("/v1/emails", letter))).toEqual([400, "domain_not_verified"])
  })

  test("from below a verified domain is a matter of a setting", async () => {
    const project = await service.project()
    const { id, domain } = await addDomain(project)
    await verify(id)
    const letter = mail({ from: `a@news.${domain}` })
    expect((await project.post("/v1/emails", letter)).status).toBe(400)
    await project.call("PATCH", "/v1/settings", { body: { allow_subdomains: true } })
    expect((await project.post("/v1/emails", letter)).status).toBe(201)
  })

  test("ends with the domain: what waits fails, and new mail is refused", async () => {
    const project = await service.project()
    const { id, domain } = await addDomain(project)
    await verify(id)
    const letter = mail({ from: `a@${domain}` })
    const sent = (await project.post("/v1/emails", letter)).body.id
    const { body } = await project.call("DELETE", `${path}/${id}`)
    expect(body.data).toEqual({ id, deleted: true })
    expect((await project.get(`${path}/${id}`)).status).toBe(404)
    expect((await project.post("/v1/emails", letter)).status).toBe(400)
    await runDue(service)
    const told = (await project.get(`/v1/emails/${sent}`)).body.data
    expect([told.status, told.status_reason]).toEqual(["failed", "domain_not_verified"])
    const keys = await service.store.read.select().from(dkimKeys).where(eq(dkimKeys.domain_id, id))
    expect(keys).toEqual([])
    expect((await project.post(path, { domain })).status).toBe(201)
  })
})
