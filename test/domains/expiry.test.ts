import { afterAll, beforeAll, expect, test } from "bun:test"
import { resolver } from "../../src/core/dns"
import type { NameServers } from "../../src/domains/authoritative"
import { type NameServer, nameServer, type Say } from "../core/name-server"
import { refusal } from "../harness/client"
import { movableClock } from "../harness/clock"
import { mail } from "../harness/mail"
import { PLACE, type TestService, testService } from "../harness/service"
import { addDomain, check, read } from "./acme"
import { runDue, told } from "./background"

/** Long enough for servers of this very process under load, and short where one says nothing. */
const [PATIENT_MS, HASTY_MS] = [2000, 60]
const DAY = 86_401

const clock = movableClock()
/** What the domain's own server says, by name. */
const texts = new Map<string, string>()
/** What a resolver says, whatever it is asked for. */
let said: Say = []
let open: NameServer[]
let own: string
let recursive_address: string
let net: NameServers
let service: TestService

beforeAll(async () => {
  const authority = await nameServer((name, kind) => {
    const text = kind === "TXT" ? texts.get(name) : undefined
    return text ? [{ data: text.match(/.{1,255}/g) ?? [] }] : "NXDOMAIN"
  })
  const recursive = await nameServer(() => said)
  open = [authority, recursive]
  own = authority.address
  recursive_address = recursive.address
  net = asking(PATIENT_MS)
  service = await testService({ domains: { net, targets: PLACE } })
})
afterAll(async () => {
  await service[Symbol.asyncDispose]()
  for (const one of open) one.close()
})

const asking = (try_ms: number): NameServers => ({
  dns: resolver({ servers: [recursive_address], try_ms }),
  servers: [own],
  try_ms,
})

/** A domain that is verified; its servers have to be found from then on. */
async function verified() {
  net.servers = [own]
  const project = await service.project()
  const domain = await addDomain(project)
  for (const { host, value, type } of domain.dns_records) if (type === "TXT") texts.set(host, value)
  expect((await check(project, domain)).body.data.status).toBe("verified")
  net.servers = []
  return { project, domain }
}

async function later(seconds: number) {
  clock.advance({ seconds })
  await runDue(service)
}

test("a verified domain outlives any outage of DNS, for as long as nobody denies it", async () => {
  const { project, domain } = await verified()
  for (const outage of ["SERVFAIL", "silence", "NXDOMAIN", []] satisfies Say[]) {
    said = outage
    Object.assign(net, asking(outage === "silence" ? HASTY_MS : PATIENT_MS), { servers: [] })
    for (const days of [1, 1, 1, 100]) await later(days * DAY)
    expect(await read(project, domain)).toMatchObject({ status: "verified", warning: null })
  }
  expect((await told(service, project)).map(({ type }) => type)).toEqual(["domain.verified"])
})

test("one that is delegated no more is warned once, and is pending after 48 hours", async () => {
  const { project, domain } = await verified()
  said = { denied_by: "test", code: "NXDOMAIN" }
  await later(DAY)
  const warned = (await project.get(`/v1/domains/${domain.id}`)).body.data
  expect([warned.status, warned.records_verified]).toEqual(["verified", 0])
  expect(warned.warning).toStartWith(
    "These DNS records are missing: verification, spf, dkim, dmarc.",
  )
  const message = mail({ from: `a@${domain.domain}` })
  expect((await project.post("/v1/emails", message)).status).toBe(201)
  await later(DAY)
  expect((await read(project, domain)).status).toBe("verified")
  await later(DAY)
  expect((await read(project, domain)).status).toBe("pending")
  expect(refusal(await project.post("/v1/emails", message))).toEqual([400, "domain_not_verified"])
  const types = (await told(service, project)).map(({ type }) => type)
  expect(types).toEqual(["domain.verified", "domain.degraded"])
})

test("one that is paid for within those hours has lost nothing", async () => {
  const { project, domain } = await verified()
  said = { denied_by: "test", code: "NXDOMAIN" }
  await later(DAY)
  said = "SERVFAIL"
  await later(DAY)
  expect((await read(project, domain)).status).toBe("verified")
  net.servers = [own]
  await later(DAY)
  expect(await read(project, domain)).toMatchObject({ status: "verified", warning: null })
})
