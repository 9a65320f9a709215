import { afterAll, describe, expect, test } from "bun:test"
import { and, eq } from "drizzle-orm"
import { simpleParser } from "mailparser"
import { domains } from "../../src/domains/tables"
import { addDomain } from "../domains/acme"
import { deliverAll } from "../harness/delivery"
import { mail } from "../harness/mail"
import { team } from "../harness/people"
import { quietLog } from "../harness/quiet"
import { PLACE, type TestProject, type TestService, testService } from "../harness/service"

quietLog()

/** As under `serve` without base_url: one that receives mail, and one that does not. */
const service = await testService({ is_unknown: true, domains: { targets: PLACE } })
const deaf = await testService({ is_unknown: true })
afterAll(async () => {
  await service[Symbol.asyncDispose]()
  await deaf[Symbol.asyncDispose]()
})

const HTML = '<p>Hi</p><a href="https://shop.test/a">Shop</a><a href="{{unsubscribe_url}}">End</a>'
const TRACKED = {
  html: HTML,
  variables: {},
  track_opens: true,
  track_clicks: true,
  category: "news",
}

async function received(it: TestService, project: TestProject, fields: object) {
  const { body } = await project.post("/v1/emails", mail({ ...TRACKED, ...fields }))
  const handed = await deliverAll(it)
  const raw = handed.find(({ message_id }) => message_id === body.id)?.raw
  const { html, headerLines } = await simpleParser(Buffer.from(raw ?? ""))
  const field = (name: string) => headerLines.find(({ key }) => key === name)?.line
  const record = (await project.get(`/v1/emails/${body.id}`)).body.data
  const [unsubscribe, one_click] = ["list-unsubscribe", "list-unsubscribe-post"].map(field)
  return { meta: body.meta, html: html || "", unsubscribe, one_click, record }
}

const warning = (text: string) => ({
  code: "no_public_address",
  message: `${text} The public address of this server is not known. Set base_url on the server.`,
})
const UNTRACKED = "Openings and clicks are not tracked."
const BY_MAIL = "Recipients can unsubscribe by mail only, not with one click."
const NO_WAY = "The email has no way to unsubscribe."

describe("without a public address", () => {
  test("a mail leaves untouched, with the address to write to alone, and its answer says why", async () => {
    const project = await service.project()
    const { meta, html, unsubscribe, one_click, record } = await received(service, project, {})
    expect(html).toContain('<a href="https://shop.test/a">Shop</a>')
    expect(html).not.toMatch(/\/t\/[oc]\/|localhost|belfry\.test\/u/)
    expect(html).toMatch(/href="mailto:u\+[a-z2-7]{26}@mx\.belfry\.test"/)
    expect(unsubscribe).toMatch(/^List-Unsubscribe: <mailto:u\+[a-z2-7]{26}@mx\.belfry\.test>$/)
    expect(one_click).toBeUndefined()
    expect(record).toMatchObject({ track_opens: false, track_clicks: false })
    expect(meta.warnings).toEqual([warning(`${UNTRACKED} ${BY_MAIL}`)])
  })

  test("nor mail received, it has no way out, and a publish is refused", async () => {
    const project = await deaf.project()
    const { meta, html, unsubscribe } = await received(deaf, project, {})
    expect([unsubscribe, html.includes('href=""')]).toEqual([undefined, true])
    expect(meta.warnings).toEqual([warning(`${UNTRACKED} ${NO_WAY}`)])
    await project.post("/v1/topics", { key: "news", name: "News" })
    const content = { email: { from: "a@example.test", subject: "Hi", text: "hello" } }
    const wish = { channels: ["email"], content }
    const refused = await project.post("/v1/topics/news/publish", wish)
    expect([refused.status, refused.body.error.code]).toEqual([503, "service_unavailable"])
    expect(refused.body.error.details.reason).toBe("no_public_address")
    const able = await service.project()
    await able.post("/v1/topics", { key: "news", name: "News" })
    expect((await able.post("/v1/topics/news/publish", wish)).status).toBe(201)
  })

  test("a plain mail has nothing to tell, and a batch tells of each mail", async () => {
    const project = await service.project()
    const { body } = await project.post("/v1/emails", mail({ html: "<p>Hi</p>" }))
    expect(body.meta.warnings).toBeUndefined()
    const messages = [mail(), mail({ category: "news" })]
    const batch = (await project.post("/v1/emails/batch", { messages })).body
    expect(batch.meta.warnings).toEqual([{ index: 1, ...warning(BY_MAIL) }])
  })

  test("a preflight warns", async () => {
    const project = await service.project()
    const { warnings } = (await project.post("/v1/emails/preflight", mail(TRACKED))).body.data
    expect(warnings).toContainEqual({ code: "links", message: warning(UNTRACKED).message })
    expect(warnings).toContainEqual({
      code: "unsubscribe_header",
      message: warning(BY_MAIL).message,
    })
  })

  test("the verified tracking host of the sender's domain is one", async () => {
    const project = await service.project()
    const { id, domain } = await addDomain(project, { tracking_subdomain: "go" })
    const [row] = await service.store.read.select().from(domains).where(eq(domains.id, id))
    const [one] = Object.values(row?.records ?? {})
    const tracking = { ...one, status: "verified" } as NonNullable<typeof one>
    const records = { ...row?.records, tracking }
    const ours = and(eq(domains.id, id), eq(domains.project_id, project.project_id))
    await service.store.tx((tx) =>
      tx.update(domains).set({ status: "verified", records }).where(ours),
    )
    const from = `a@${domain}`
    const { meta, html, unsubscribe, one_click } = await received(service, project, { from })
    expect(meta.warnings).toBeUndefined()
    expect(html.match(new RegExp(`"https://go.${domain}/t/[oc]/`, "g"))).toHaveLength(2)
    expect(unsubscribe).toContain(`<https://go.${domain}/u/`)
    expect(one_click).toContain("One-Click")
  })

  test("tracking_domain, which nobody checks, is none", async () => {
    const project = await service.project()
    await project.call("PATCH", "/v1/settings", { body: { tracking_domain: "links.acme.test" } })
    expect((await received(service, project, {})).html).not.toContain("links.acme.test")
  })

  test("readyz says so, and addresses for people outside are paths of the server", async () => {
    expect((await service.anybody.get("/readyz")).body.warnings[0]).toStartWith(
      "base_url is not set",
    )
    const begun = await service.anybody.post("/v1/session/device", { client_name: "x" })
    expect(begun.body.data.verification_uri).toBe("/device")
    const { owner } = await team(service)
    const invited = { email: "ben@example.test", role: "member" }
    expect((await owner.post("/v1/accounts/me/members/invite", invited)).status).toBe(201)
    const letter = service.mails.at(-1)?.text ?? ""
    expect(letter).toMatch(/\n\/invitation\/\S+\n\(a path of the server/)
    expect(letter).not.toMatch(/https?:/)
  })
})
