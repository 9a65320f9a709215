import { expect, test } from "bun:test"
import { and, eq } from "drizzle-orm"
import { domains } from "../../src/domains/tables"
import { addDomain } from "../domains/acme"
import { refusal } from "../harness/client"
import type { TestProject } from "../harness/service"
import { sharedService } from "../harness/shared-service"
import { FIREFOX, receive } from "./letters"

const service = await sharedService()

const HTML = '<a href="https://shop.test/a">a</a>'

const set = (project: TestProject, tracking_domain: string | null) =>
  project.call("PATCH", "/v1/settings", { body: { tracking_domain } })

async function hostsOf(project: TestProject, fields: object = {}) {
  const { html, links } = await receive(service, project, { html: HTML, ...fields })
  const hosts = [...html.matchAll(/https?:\/\/[^/"]+(?=\/t\/)/g)].map(([host]) => host)
  return { hosts: [...new Set(hosts)], links }
}

/** A domain of the project that mail may be sent from, with or without the record of its links. */
async function verified(project: TestProject, tracking: "verified" | "missing") {
  const { id, domain } = await addDomain(project, { tracking_subdomain: "go" })
  const [row] = await service.store.read.select().from(domains).where(eq(domains.id, id))
  const [verification] = Object.values(row?.records ?? {})
  const record = { ...verification, status: tracking } as NonNullable<typeof verification>
  const records = { ...row?.records, tracking: record }
  const ours = and(eq(domains.id, id), eq(domains.project_id, project.project_id))
  await service.store.tx((tx) =>
    tx.update(domains).set({ status: "verified", records }).where(ours),
  )
  return domain
}

test("links lead to the address of this server, or to tracking_domain of the project", async () => {
  const project = await service.project()
  expect((await hostsOf(project)).hosts).toEqual(["http://belfry.test"])
  expect((await set(project, "Links.Acme.TEST")).body.data.tracking_domain).toBe("links.acme.test")
  const { hosts, links } = await hostsOf(project)
  expect(hosts).toEqual(["http://links.acme.test"])
  const url = `http://links.acme.test${links[0]}`
  const answer = await service.app.handle(new Request(url, { headers: { "user-agent": FIREFOX } }))
  expect([answer.status, answer.headers.get("location")]).toEqual([302, "https://shop.test/a"])
  await set(project, null)
  expect((await hostsOf(project)).hosts).toEqual(["http://belfry.test"])
})

test("a domain's own host comes first, once its record is there", async () => {
  const project = await service.project()
  await set(project, "links.acme.test")
  const domain = await verified(project, "verified")
  expect((await hostsOf(project, { from: `a@${domain}` })).hosts).toEqual([`http://go.${domain}`])
  expect((await hostsOf(project)).hosts).toEqual(["http://links.acme.test"])
  const missing = await verified(project, "missing")
  const other = await hostsOf(project, { from: `a@${missing}` })
  expect(other.hosts).toEqual(["http://links.acme.test"])
})

test("a tracking domain needs a plan that has one", async () => {
  const project = await service.project({ plan: "free" })
  const refused = await set(project, "links.acme.test")
  expect(refusal(refused)).toEqual([402, "plan_upgrade_required"])
  expect(refused.body.error.details).toMatchObject({ feature: "tracking_domain", plan: "free" })
  expect((await set(project, null)).status).toBe(200)
})
