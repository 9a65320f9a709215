import { describe, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import type { RecordCheck } from "../../src/domains/tables"
import { domains } from "../../src/domains/tables"
import { accounts } from "../../src/identity/tables"
import { suppress } from "../../src/suppressions/suppressions"
import { testDomain } from "../domains/subject"
import type { TestProject } from "../harness/service"
import { sharedService } from "../harness/shared-service"

const service = await sharedService()

const GOOD = {
  from: "me@mailbox.test",
  to: "ann@mailbox.test",
  subject: "Your receipt",
  html: '<html lang="en"><body><p>Thank you for your order, Ann.</p></body></html>',
}

interface Check {
  name: string
  outcome: string
  detail: string
}

interface Preflight {
  ok: boolean
  errors: { code: string; message: string }[]
  warnings: { code: string; message: string }[]
  rendered: { size_bytes: number }
}

async function check(project: TestProject, change: object = {}) {
  const { status, body } = await project.post("/v1/emails/preflight", { ...GOOD, ...change })
  expect(status).toBe(200)
  const checks: Check[] = body.data.checks
  const of = (wanted: string) => checks.find(({ name }) => name === wanted)
  return { ...(body.data as Preflight), checks, of }
}

/** The checks that did not pass, as `name outcome`. */
const notable = (checks: Check[]) =>
  checks.flatMap(({ name, outcome }) => (outcome === "pass" ? [] : [`${name} ${outcome}`]))

describe("a preflight", () => {
  test("of a good email passes all checks in the contract's order, and sends nothing", async () => {
    const project = await service.project()
    const { ok, errors, warnings, checks } = await check(project)
    expect([ok, errors, warnings]).toEqual([true, [], []])
    expect(checks.map(({ name, outcome }) => `${name} ${outcome}`)).toEqual([
      "sender pass",
      "domain pass",
      "suppression pass",
      "preference pass",
      "authentication pass",
      "dkim_alignment pass",
      "spf_alignment pass",
      "dmarc pass",
      "rendering pass",
      "size pass",
      "links pass",
      "accessibility pass",
      "spam_content pass",
      "unsubscribe_header pass",
    ])
    expect((await project.get("/v1/emails")).body.data).toEqual([])
    expect((await project.get("/v1/events")).body.data).toEqual([])
  })

  test("shows the text that is made from html, and the size with headers and files", async () => {
    const project = await service.project()
    const { rendered } = await check(project)
    const { subject, html } = GOOD
    expect(rendered).toMatchObject({ subject, html, text: "Thank you for your order, Ann." })
    expect(rendered.size_bytes).toBeGreaterThan(html.length)
    const content = Buffer.alloc(57_000).toString("base64")
    const attachments = [{ filename: "a.bin", content, content_type: "image/png" }]
    const withFile = await check(project, { attachments })
    expect(withFile.rendered.size_bytes - rendered.size_bytes).toBe(78_300)
  })

  test("of what no send takes is refused as a send is", async () => {
    const project = await service.project()
    const asked = await project.post("/v1/emails/preflight", { to: "nobody" })
    const sent = await project.post("/v1/emails", { to: "nobody" })
    expect([asked.status, asked.body.error.details]).toEqual([422, sent.body.error.details])
  })

  test("tells every reason for which the send would be refused, not only the first", async () => {
    const project = await service.project()
    const address = "ann@mailbox.test"
    const reason = "manual" as const
    await service.store.tx((tx) =>
      suppress(tx, project.project_id, { channel: "email", address, reason, origin: "api" }),
    )
    const { ok, errors, of } = await check(project, { from: "me@unknown.example.com" })
    expect([ok, errors.map(({ code }) => code)]).toEqual([
      false,
      ["domain_not_verified", "suppressed_recipient"],
    ])
    expect([of("domain")?.outcome, of("suppression")?.outcome]).toEqual(["fail", "fail"])
    expect(of("authentication")?.detail).toContain("unknown.example.com is not verified")
    const { body } = await project.post("/v1/emails", { ...GOOD, from: "me@unknown.example.com" })
    expect(errors[0]).toMatchObject({ code: body.error.code, message: body.error.message })
  })

  test("of an account that may not send tells why, and of a throttled one warns", async () => {
    const project = await service.project()
    const standing = async (sending_status: "frozen" | "throttled") => {
      const change = { sending_status, sending_status_reason: "bounce_rate=12%" }
      await service.store.tx((tx) =>
        tx.update(accounts).set(change).where(eq(accounts.id, project.account_id)),
      )
      const { ok, errors, of } = await check(project)
      return [ok, errors.map(({ code }) => code), of("sender")?.outcome]
    }
    expect(await standing("frozen")).toEqual([false, ["account_frozen"], "fail"])
    expect(await standing("throttled")).toEqual([true, [], "warn"])
  })

  test("without a sender says so, and looks at the content all the same", async () => {
    const project = await service.project()
    const { ok, errors, warnings, of } = await check(project, { from: undefined })
    expect([ok, errors[0]?.code]).toEqual([false, "sender_not_configured"])
    expect(warnings.map(({ code }) => code)).toEqual([
      "domain",
      "authentication",
      "dkim_alignment",
      "spf_alignment",
      "dmarc",
    ])
    expect([of("sender")?.outcome, of("dmarc")?.outcome, of("links")?.outcome]).toEqual([
      "fail",
      "warn",
      "pass",
    ])
  })

  test("warns of copies that are left out", async () => {
    const project = await service.project()
    const given = { channel: "email", address: "ben@mailbox.test" } as const
    await service.store.tx((tx) =>
      suppress(tx, project.project_id, { ...given, reason: "complaint", origin: "event" }),
    )
    const { ok, warnings } = await check(project, { cc: ["Ben@mailbox.test", "c@mailbox.test"] })
    expect([ok, warnings]).toEqual([
      true,
      [
        {
          code: "suppression",
          message: "ben@mailbox.test is suppressed and will be left out of the mail.",
        },
      ],
    ])
  })

  test("warns of copies that are left out also where the recipient is refused", async () => {
    const project = await service.project()
    for (const address of ["ann@mailbox.test", "ben@mailbox.test"]) {
      const given = { channel: "email", address, reason: "manual", origin: "api" } as const
      await service.store.tx((tx) => suppress(tx, project.project_id, given))
    }
    const { errors, warnings } = await check(project, { cc: "ben@mailbox.test" })
    const codes = [...errors, ...warnings].map(({ code }) => code)
    expect(codes).toEqual(["suppressed_recipient", "suppression"])
  })

  test("a foreign project's suppression counts nothing", async () => {
    const [project, other] = [await service.project(), await service.project()]
    const given = { channel: "email", address: "ann@mailbox.test" } as const
    await service.store.tx((tx) =>
      suppress(tx, other.project_id, { ...given, reason: "manual", origin: "api" }),
    )
    expect((await check(project)).ok).toBe(true)
  })

  test("names what is wrong with the content", async () => {
    const project = await service.project()
    const html = `<div><p style="color:#aaa">Dear customer, {{name}}</p>
      <a href="http://shop.example.com">bank.example.net</a><img src="a.png">
      <form><input></form>${" ".repeat(110_000)}`
    const { ok, checks, warnings } = await check(project, { html, subject: "ACT NOW FRIEND!!" })
    expect(ok).toBe(true)
    expect(notable(checks)).toEqual([
      "rendering warn",
      "size warn",
      "links warn",
      "accessibility warn",
      "spam_content warn",
    ])
    const messages = warnings.map(({ message }) => message).join("\n")
    for (const part of [
      "{{name}} is in the mail as it was written",
      "Line 1: <div> is not closed",
      "The html uses <form> once",
      "Some mail programs show only the first 104448",
      '"http://shop.example.com" is without TLS',
      "The text says example.net, but the link leads to example.com",
      "The html names no language",
      "An image has no alternative text",
      "The subject is all in capitals",
    ]) {
      expect(messages).toContain(part)
    }
  })

  test("of a category without TLS warns that no program shows a button", async () => {
    const project = await service.project()
    const { of } = await check(project, { category: "news" })
    expect(of("unsubscribe_header")).toMatchObject({ outcome: "warn" })
    expect(of("unsubscribe_header")?.detail).toContain("http://belfry.test is without TLS")
  })

  test("of content that would take seconds to look at says so instead", async () => {
    const project = await service.project()
    const { ok, warnings, of } = await check(project, { html: "<table>".repeat(150_000) })
    expect(ok).toBe(true)
    for (const name of ["rendering", "links", "accessibility", "spam_content"]) {
      expect(of(name)).toMatchObject({ outcome: "warn" })
      expect(of(name)?.detail).toContain("have 1050000 bytes")
      expect(warnings.map(({ code }) => code)).toContain(name)
    }
  })

  test("of a message above 10 MB fails as the send would", async () => {
    const project = await service.project()
    const { errors, of } = await check(project, { html: "x".repeat(10_485_761) })
    expect([errors[0]?.code, of("size")?.outcome]).toEqual(["payload_too_large", "fail"])
  })
})

describe("the records of the sender's domain", () => {
  const there = (found: string[] = []): RecordCheck => ({
    ...{ status: "verified", found, hint: null, mistake: null, difference: null, answers: [] },
  })
  const DMARC = "v=DMARC1; p=reject; rua=mailto:d@acme.test"

  async function checked(records: Record<string, RecordCheck>, from = "me@acme.test") {
    const project = await service.project()
    const { project_id } = project
    const row = testDomain("acme.test", { project_id, status: "verified", records })
    await service.store.tx((tx) => tx.insert(domains).values(row))
    const all = await check(project, { from })
    const names = ["authentication", "dkim_alignment", "spf_alignment", "dmarc"]
    return names.map((name) => [all.of(name)?.outcome, all.of(name)?.detail])
  }

  test("pass where all of them are published", async () => {
    const all = { dkim: there(), spf: there(), return_path: there(), dmarc: there([DMARC]) }
    expect(await checked(all)).toEqual([
      ["pass", "The DKIM key and the SPF record of acme.test are published."],
      ["pass", "The signature is of acme.test, as is From."],
      ["pass", "Receivers send reports to bounce.acme.test, which is below the From domain."],
      ["pass", "The policy is reject: receivers refuse mail that fails."],
    ])
  })

  test("warn where they are not, each with what to do", async () => {
    const found = await checked({ spf: there(), dmarc: there(["v=DMARC1; p=maybe"]) })
    expect(found.map(([outcome]) => outcome)).toEqual(["warn", "warn", "warn", "warn"])
    const details = found.map(([, detail]) => detail).join("\n")
    expect(details).toContain("did not find the DKIM record of acme.test")
    expect(details).toContain('The policy "maybe" is not known to receivers.')
  })
})

describe("a preflight of a template", () => {
  test("shows and checks the rendered texts", async () => {
    const project = await service.project()
    const html = '<html lang="en"><body><p>{{name}}</p><a href="{{url}}">Shop</a></body></html>'
    await project.post("/v1/templates", { name: "shop", subject: "For {{name}}", html })
    const fields = { template_id: "shop", variables: { name: "Ann", url: "http://shop.test" } }
    const { rendered, of } = await check(project, fields)
    expect(rendered).toMatchObject({
      subject: "For Ann",
      html: expect.stringContaining("<p>Ann</p>"),
    })
    expect(of("links")?.outcome).toBe("warn")
    expect((await project.get("/v1/emails")).body.meta.total).toBe(0)
  })

  test("fails at the rendering where a value is missing, as a send would", async () => {
    const project = await service.project()
    const given = { html: "<p>{{name}}</p>", variables: {} }
    const { ok, errors, warnings, of } = await check(project, given)
    expect([ok, of("rendering")?.outcome]).toEqual([false, "fail"])
    expect(warnings.map(({ code }) => code)).toEqual(["links", "accessibility", "spam_content"])
    expect(of("links")?.detail).toContain("needs the rendered mail")
    expect(errors).toMatchObject([
      { code: "template_render_failed", details: { missing: ["name"] } },
    ])
  })
})
