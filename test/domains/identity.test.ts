import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { LOCAL } from "../../src/audit-log/audit-log"
import { PROVIDERS } from "../../src/channels"
import * as configs from "../../src/providers/configs"
import { emailIdentities } from "../../src/providers/open-providers"
import { type SesRequest, sesServer } from "../fakes/ses-server"
import { movableClock } from "../harness/clock"
import { type Knot, noKnot, startKnot } from "../harness/knot"
import { testProviders } from "../harness/providers"
import { quietLog } from "../harness/quiet"
import { PLACE, type TestProject, type TestService, testService } from "../harness/service"
import { ALL, addDomain, check, type Domain, freshName, lines, read } from "./acme"
import { runDue, told } from "./background"
import { netOf } from "./subject"

const SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
const credentials = {
  region: "eu-west-1",
  access_key_id: "AKIDEXAMPLE000000000",
  secret_access_key: SECRET,
}
const TOKENS = ["tokena", "tokenb", "tokenc"]
const TEXTS = ["verification", "spf", "dmarc"]

type Standing = "PENDING" | "SUCCESS" | "FAILED" | "away" | "silent"

quietLog()
const clock = movableClock()
let knot: Knot
let service: TestService
let ses: ReturnType<typeof sesServer>
/** What SES thinks of a domain that it knows; of others it knows nothing. */
let standing: Standing
const known = new Set<string>()

function answer({ method, path, body }: SesRequest) {
  if (standing === "silent") return new Promise<never>(() => {})
  if (standing === "away") return { status: 500, body: { message: "try later" } }
  const made = method === "POST" ? (JSON.parse(body) as { EmailIdentity: string }) : undefined
  if (made) known.add(made.EmailIdentity)
  else if (!known.has(decodeURIComponent(path.split("/").at(-1) ?? ""))) {
    const headers = { "x-amzn-errortype": "NotFoundException" }
    return { status: 404, body: { message: "no such identity" }, headers }
  }
  const VerifiedForSendingStatus = standing === "SUCCESS"
  const DkimAttributes = { Status: standing, Tokens: TOKENS, SigningAttributesOrigin: "AWS_SES" }
  const rest = made ? {} : { VerificationStatus: standing }
  return { status: 200, body: { VerifiedForSendingStatus, DkimAttributes, ...rest } }
}

const dkimOf = ({ dns_records }: Domain) =>
  dns_records
    .filter(({ purpose }) => purpose === "dkim")
    .map(({ type, host, required, status }) => [type, host.split(".")[0], required, status])

const CNAMES = (status: string) => TOKENS.map((token) => ["CNAME", token, true, status])

const aliases = ({ dns_records }: Domain) =>
  dns_records
    .filter(({ type }) => type === "CNAME")
    .map(({ host, value }) => `${host}. CNAME ${value}.`)

describe.skipIf(noKnot)("a domain of a project whose mail goes by SES", () => {
  beforeAll(async () => {
    ses = sesServer(SECRET, answer)
    knot = await startKnot({ "amazonses.com": ['@ TXT "v=spf1 ip4:192.0.2.0/24 -all"'] })
    const ask = (project_id: string, domain: string) => {
      const { store, secrets } = service.parts
      const settings = { "providers.ses.endpoint": ses.url }
      const providers = testProviders(secrets, { settings })
      return emailIdentities(store.read, providers)(project_id, domain)
    }
    service = await testService({
      domains: { net: netOf([knot.address]), targets: PLACE, identityOf: ask },
    })
  })
  afterAll(async () => {
    await service[Symbol.asyncDispose]()
    await knot[Symbol.asyncDispose]()
    ses[Symbol.dispose]()
  })

  const maker = () => ({
    secrets: service.parts.secrets,
    by: LOCAL,
    table: PROVIDERS,
  })

  async function sesProject() {
    const project = await service.project()
    const kind = "email_provider" as const
    const rest = { name: "ses", priority: 100, credentials, settings: {} }
    const { row } = await service.store.tx((tx) =>
      configs.set(tx, project, { kind, provider: "ses", ...rest }, maker()),
    )
    const turnOff = () =>
      service.store.tx((tx) =>
        configs.patch(tx, project, { kind, id: row.id }, { enabled: false }, maker()),
      )
    return { project, turnOff }
  }

  const look = async (project: TestProject, domain: Domain) => {
    clock.advance({ seconds: 11 })
    const { data } = (await check(project, domain)).body
    const { status, records_verified, provider_identity_status, provider_dkim_status } = data
    return [status, records_verified, provider_identity_status, provider_dkim_status]
  }

  async function verified() {
    standing = "SUCCESS"
    const { project, turnOff } = await sesProject()
    const domain = await addDomain(project)
    await knot.serve(domain.domain, [...lines(domain, TEXTS), ...aliases(domain)])
    expect(await look(project, domain)).toEqual(["verified", 4, "success", "success"])
    return { project, domain, turnOff }
  }

  test("has the three CNAMEs of SES from the beginning; together they are the DKIM record", async () => {
    standing = "PENDING"
    const { project } = await sesProject()
    const before = ses.requests.length
    const domain = await addDomain(project)
    const asked = ses.requests.slice(before)
    expect(asked.map(({ method, is_signed }) => [method, is_signed])).toEqual([
      ["GET", true],
      ["POST", true],
    ])
    expect(dkimOf(domain)).toEqual([...CNAMES("pending"), ["TXT", "svc1", false, "pending"]])
    expect(domain).toMatchObject({
      records_total: 4,
      records_verified: 0,
      provider_identity_status: "pending",
      provider_dkim_status: "pending",
      dkim_selectors: ["svc1"],
    })
    const zone = await project.get(`/v1/domains/${domain.id}/zonefile`)
    expect(zone.text).toContain(
      `tokena._domainkey.${domain.domain}.\t3600\tIN\tCNAME\ttokena.dkim.amazonses.com.`,
    )

    const three = aliases(domain)
    await knot.serve(domain.domain, lines(domain, TEXTS))
    expect(await look(project, domain)).toEqual(["pending", 3, "pending", "pending"])
    await knot.serve(domain.domain, [...lines(domain, TEXTS), ...three.slice(0, 2)])
    expect(await look(project, domain)).toEqual(["pending", 3, "pending", "pending"])
    await knot.serve(domain.domain, [...lines(domain, TEXTS), ...three])
    expect(await look(project, domain)).toEqual(["pending", 4, "pending", "pending"])
    standing = "SUCCESS"
    expect(await look(project, domain)).toEqual(["verified", 4, "success", "success"])
    const [event, ...more] = await told(service, project)
    expect([event?.type, event?.data.records_verified, more]).toEqual(["domain.verified", 4, []])
  })

  test("tells where a CNAME was put by mistake", async () => {
    standing = "PENDING"
    const { project } = await sesProject()
    const domain = await addDomain(project)
    const [first = "", ...rest] = aliases(domain)
    const twice = first.replace(". CNAME", `.${domain.domain}. CNAME`)
    await knot.serve(domain.domain, [...lines(domain, TEXTS), twice, ...rest])
    const { data } = (await check(project, domain)).body
    expect(data.dns_records.find(({ type }: { type: string }) => type === "CNAME")).toMatchObject({
      status: "missing",
      mistake: "zone_appended_twice",
    })
  })

  test.each(["away", "silent"] as const)("waits for SES while that is %s", async (how) => {
    standing = how
    const { project } = await sesProject()
    const domain = await addDomain(project, { domain: freshName() })
    expect(dkimOf(domain)).toEqual([["TXT", "svc1", true, "pending"]])
    await knot.serve(domain.domain, lines(domain, ALL))
    expect(await look(project, domain)).toEqual(["pending", 4, "pending", "pending"])
    standing = "FAILED"
    expect(await look(project, domain)).toEqual(["pending", 3, "pending", "failed"]) // just made there
    expect(await look(project, domain)).toEqual(["pending", 3, "failed", "failed"])
    standing = how
    expect(await look(project, domain)).toEqual(["pending", 3, "failed", "failed"])
  })

  test("is not lost once it is verified, whatever SES says then", async () => {
    const { project, domain } = await verified()
    standing = "FAILED"
    clock.advance({ seconds: 2 * 86_401 })
    await runDue(service)
    expect(await read(project, domain)).toMatchObject({
      status: "verified",
      provider_dkim_status: "failed",
      warning: null,
    })
  })

  test("is warned once when one of the CNAMEs is gone", async () => {
    const { project, domain } = await verified()
    await knot.serve(domain.domain, [...lines(domain, TEXTS), ...aliases(domain).slice(1)])
    clock.advance({ seconds: 86_401 })
    await runDue(service)
    expect(await read(project, domain)).toMatchObject({ status: "verified", records_verified: 3 })
    const events = await told(service, project)
    expect(events.map(({ type, data }) => [type, data.missing])).toEqual([
      ["domain.verified", undefined],
      ["domain.degraded", ["dkim"]],
    ])
  })

  test("needs our own key again as soon as SES does not deliver any more", async () => {
    const { project, domain, turnOff } = await verified()
    await turnOff()
    const after = await read(project, domain)
    expect(dkimOf(after)).toEqual([["TXT", "svc1", true, "missing"]])
    expect(after).toMatchObject({
      provider_identity_status: "not_required",
      provider_dkim_status: "not_required",
      records_verified: 3,
    })
    clock.advance({ seconds: 86_401 })
    await runDue(service)
    const events = await told(service, project)
    expect(events.map(({ type }) => type)).toEqual(["domain.verified", "domain.degraded"])
    expect(events[1]?.data.missing).toContain("dkim")
  })
})
