import { describe, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { newId } from "../../src/core/ids"
import { localPartFor } from "../../src/core/mail-token"
import { now } from "../../src/core/time"
import { domains } from "../../src/domains/tables"
import { projects } from "../../src/identity/tables"
import { inboundTarget } from "../../src/inbound/addresses"
import { inboundRoutes } from "../../src/inbound/tables"
import { messages } from "../../src/messages/tables"
import { firstProject } from "../../src/tenancy/setup"
import { addReceivingDomain } from "../harness/inbound-rows"
import { mail } from "../harness/mail"
import type { TestProject } from "../harness/service"
import { sharedService } from "../harness/shared-service"

const service = await sharedService()
const { store } = service
const { secrets } = service.parts
const HOST = "mx.belfry.test"
const ask = (address: string) =>
  inboundTarget({ read: store.read, secrets, hosts: [HOST] }, address)

const NOT_OURS = { enhanced: "5.7.1" }
const UNKNOWN = { enhanced: "5.1.1" }

async function receiving(options: { mode?: "catch_all" | "routes" } = {}) {
  const project = await service.project()
  const domain = await addReceivingDomain(store, project)
  if (options.mode) {
    await project.call("PATCH", "/v1/settings", { body: { inbound: { mode: options.mode } } })
  }
  return { project, domain }
}

const message = async (project: TestProject) =>
  (await project.post("/v1/emails", mail())).body.id as string

const RELAY_FORMS = [
  "victim%elsewhere.test@DOMAIN",
  "victim%elsewhere.test%x@DOMAIN",
  "elsewhere.test!victim@DOMAIN",
  "a!b!victim@DOMAIN",
  "@DOMAIN:victim@elsewhere.test",
  "@a.test,@b.test:victim@DOMAIN",
  '"victim@elsewhere.test"@DOMAIN',
  '"victim%elsewhere.test"@DOMAIN',
  '"any one@elsewhere.test"@DOMAIN',
  "victim@elsewhere.test@DOMAIN",
  "victim@DOMAIN@elsewhere.test",
  "victim@elsewhere.test",
  "victim@sub.DOMAIN",
  "victim@[127.0.0.1]",
  "victim@[192.0.2.1]",
  "victim",
  "@DOMAIN",
  "victim@DOMAIN.",
  "victim@elsewhere.test:25",
  "vic\\@tim@DOMAIN",
  "victim @DOMAIN",
  "",
  "victim@localhost",
  `victim@xDOMAIN`,
]

describe("no form that relays is taken, in any mode:", () => {
  test.each(RELAY_FORMS)("%p", async (form) => {
    for (const mode of ["catch_all", "routes"] as const) {
      const { domain } = await receiving({ mode })
      expect(await ask(form.replaceAll("DOMAIN", domain))).toMatchObject(NOT_OURS)
    }
  })
})

describe("a receiving domain", () => {
  test("takes every local part, in whatever case the domain is written", async () => {
    const { project, domain } = await receiving()
    for (const local of [
      "any",
      "Support+Tag",
      "grüße",
      "o'neill",
      "a/b",
      "a..b",
      ".a",
      "a.",
      '"a..b"',
      '"any one"',
    ]) {
      const target = await ask(`${local}@${domain.toUpperCase()}`)
      const owner = { domain, project_id: project.project_id, account_id: project.account_id }
      expect(target).toMatchObject({ is: "receiving", owner })
    }
  })

  test.each([
    ["is not verified", { status: "pending" as const }],
    ["does not receive", { receiving: false }],
  ])("takes nothing once it %s", async (_, change) => {
    const { domain } = await receiving()
    expect(await ask(`a@${domain}`)).toMatchObject({ is: "receiving" })
    await store.tx((tx) => tx.update(domains).set(change).where(eq(domains.domain, domain)))
    if (service.database_url !== null) await Bun.sleep(1100) // what another node may believe
    expect(await ask(`a@${domain}`)).toMatchObject(NOT_OURS)
  })

  test("takes nothing for a project that is being deleted", async () => {
    const { project, domain } = await receiving()
    const ours = eq(projects.id, project.project_id)
    await store.tx((tx) => tx.update(projects).set({ status: "deleting" }).where(ours))
    expect(await ask(`a@${domain}`)).toMatchObject(NOT_OURS)
  })

  test("with mode routes takes what a route matches, and the addresses that RFC 2142 and reports want", async () => {
    const { project, domain } = await receiving({ mode: "routes" })
    const row = (match_to: string) => ({
      ...{ id: newId(), project_id: project.project_id, match_to: `${match_to}@${domain}` },
      ...{ action: "webhook" as const, target: null, priority: 100 },
      ...{ created_at: now(), updated_at: now() },
    })
    const rows = [row("sales"), row("support+*")]
    await store.tx((tx) => tx.insert(inboundRoutes).values(rows))
    for (const local of [
      "sales",
      "SALES",
      "support+7",
      "support+",
      "postmaster",
      "Abuse",
      "dmarc",
    ]) {
      expect(await ask(`${local}@${domain}`)).toMatchObject({ is: "receiving" })
    }
    for (const local of ["support", "supporter+7", "sale", "sales+1", "any"]) {
      expect(await ask(`${local}@${domain}`)).toMatchObject(UNKNOWN)
    }
  })
})

test("the domain of this machine takes all mail for the first project, where there is one", async () => {
  const parts = { read: store.read, secrets, hosts: [HOST] }
  const own = { ...parts, own_domain: "in.mailbox.test" }
  const [first] = await firstProject(store.read)
  const owner = { ...first, domain: "in.mailbox.test" }
  for (const address of ["any@in.mailbox.test", "A..b+tag@IN.mailbox.test"]) {
    expect(await inboundTarget(own, address)).toMatchObject({ is: "receiving", owner })
    expect(await inboundTarget(parts, address)).toMatchObject(NOT_OURS)
  }
  for (const address of ["a@mailbox.test", "a@x.in.mailbox.test", "a%b.test@in.mailbox.test"])
    expect(await inboundTarget(own, address)).toMatchObject(NOT_OURS)
  const token = localPartFor(secrets, "r", await message(await service.project()))
  const target = await inboundTarget(own, `${token}@in.mailbox.test`)
  expect(target).toMatchObject({ is: "token", kind: "r" })
})

describe("an address with a MAC", () => {
  test.each(["b", "r"] as const)(
    "%s+ is taken at the instance and at domains of the project",
    async (kind) => {
      const { project, domain } = await receiving({ mode: "routes" })
      const message_id = await message(project)
      const local = localPartFor(secrets, kind, message_id)
      for (const host of [HOST, domain, `bounce.${domain}`]) {
        const target = await ask(`${local.toUpperCase()}@${host}`)
        const owner = { project_id: project.project_id, account_id: project.account_id }
        expect(target).toEqual({ is: "token", kind, message_id, owner })
      }
      expect(await ask(`${local}@elsewhere.test`)).toMatchObject(NOT_OURS)
      const { domain: theirs } = await receiving()
      expect(await ask(`${local}@${theirs}`)).toMatchObject(NOT_OURS)
    },
  )

  test("u+ is taken at the instance and at domains of the project, whatever became of the mail", async () => {
    const { project, domain } = await receiving({ mode: "routes" })
    const { body } = await project.post("/v1/emails", mail({ category: "news" }))
    const [row] = await store.read.select().from(messages).where(eq(messages.id, body.id))
    const local = `u+${row?.envelope?.unsubscribe}`
    await store.tx((tx) => tx.delete(messages).where(eq(messages.id, body.id)))
    const owner = { project_id: project.project_id, account_id: project.account_id }
    const scope = { type: "category", key: "news" }
    for (const host of [HOST, domain, `bounce.${domain}`]) {
      const target = await ask(`${local.toUpperCase()}@${host}`)
      expect(target).toMatchObject({ is: "unsubscribe", owner, link: { ...owner, scope } })
    }
    const { domain: theirs } = await receiving()
    for (const host of ["elsewhere.test", theirs]) {
      expect(await ask(`${local}@${host}`)).toMatchObject(NOT_OURS)
    }
  })

  test("that is wrong is no address of the instance, and any other in a domain that takes all", async () => {
    const { project, domain } = await receiving()
    const right = localPartFor(secrets, "r", await message(project))
    const wrong = `${right.slice(0, -3)}${right.endsWith("aaa") ? "bbb" : "aaa"}`
    expect(await ask(`${wrong}@${HOST}`)).toMatchObject(NOT_OURS)
    expect(await ask(`${wrong}@${domain}`)).toMatchObject({ is: "receiving" })
    const { domain: strict } = await receiving({ mode: "routes" })
    expect(await ask(`${wrong}@${strict}`)).toMatchObject(UNKNOWN)
  })

  test("of a message that is gone is not taken", async () => {
    expect(await ask(`${localPartFor(secrets, "b", newId())}@${HOST}`)).toMatchObject(NOT_OURS)
  })
})

test("the instance takes reports and what RFC 2142 wants, and nothing else", async () => {
  const locals = ["postmaster", "Abuse", "dmarc", "tls-reports", "complaints"]
  for (const local of locals)
    expect(await ask(`${local}@${HOST}`)).toMatchObject({ is: "instance" })
  expect(await ask("Postmaster")).toMatchObject({ is: "instance" })
  for (const local of ["root", "info", "noreply"]) {
    expect(await ask(`${local}@${HOST}`)).toMatchObject(NOT_OURS)
  }
})
