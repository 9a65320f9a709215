import { expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { MAIL_TYPES } from "../../src/auth/environment-settings"
import { MAIL_VARIABLES } from "../../src/auth/mail-variables"
import { MAIL_WORDS } from "../../src/auth/mail-words"
import { AuthMail } from "../../src/auth/mails"
import { projects } from "../../src/identity/tables"
import { accessibilityFindings } from "../../src/lib/accessibility-check"
import { parseMail } from "../../src/mailbox/parse-task"
import { newApplication } from "../harness/application"
import { deliverAll } from "../harness/delivery"
import { sharedService } from "../harness/shared-service"

const service = await sharedService()
const mail = new AuthMail(service.parts)

const VALUES: Record<string, string> = {
  ...{ link: "https://shop.test/a/belfry_magic_x?a=1&b=2", code: "482913", inviter: "Bob" },
  ...{ device: "Firefox on Linux", ip: "192.0.2.7", time: "2026-11-30T10:00:00.000Z" },
  ...{ organization: "Acme", new_email: "b@shop.test" },
}

async function shop(branding = {}) {
  const project = await service.project()
  const settings = { branding: { name: "Ann & Bob's", ...branding } }
  const own = eq(projects.id, project.project_id)
  await service.store.tx((tx) =>
    tx
      .update(projects)
      .set({ settings: settings as never })
      .where(own),
  )
  return { project, app: await newApplication(service, project) }
}

test.each(Object.keys(MAIL_WORDS))("all ten types can be read by everybody: %s", async (locale) => {
  const { app } = await shop({ primary_color: "#ffcc00", support_url: "https://shop.test/help" })
  const environment = await app.environment("test")
  for (const type of MAIL_TYPES) {
    const variables = Object.fromEntries(
      MAIL_VARIABLES[type].flatMap(({ key }) => (VALUES[key] ? [[key, VALUES[key]]] : [])),
    )
    const to = { email: `${type}@mailbox.test`, locale: `${locale}-XX` }
    const ready = await mail.prepare(environment, { type, to, variables, ends_in_seconds: 600 })
    await service.store.tx((tx) => ready.accept(tx))
  }
  const handed = await deliverAll(service)
  expect(handed.length).toBe(MAIL_TYPES.length)
  for (const { raw, to } of handed) {
    const type = to[0]?.split("@")[0] as (typeof MAIL_TYPES)[number]
    const { headers, html, text } = parseMail(raw)
    expect(accessibilityFindings(html ?? "")).toEqual([])
    expect(html).toContain(`<html lang="${locale}" dir="${locale === "ar" ? "rtl" : "ltr"}">`)
    for (const part of [headers.subject, html, text]) {
      expect(part).not.toMatch(/\{\{|\}\}|undefined|&amp;amp;/)
    }
    for (const { key, required } of MAIL_VARIABLES[type]) {
      const value = VALUES[key] ?? ""
      if (required) expect(html).toContain(value.replaceAll("&", "&amp;").replaceAll("=", "&#x3D;"))
      if (required) expect(text).toContain(value)
    }
    expect(text).toContain("Ann & Bob's")
  }
})

test("the list has ten rows in the language of the project", async () => {
  const { project } = await shop()
  const { data } = (await project.get("/v1/auth/email-templates")).body
  expect(data.map(({ type }: { type: string }) => type)).toEqual([...MAIL_TYPES])
  expect(data[2]).toMatchObject({ subject: MAIL_WORDS.en.types.email_otp.subject })
  expect(data[2].variables[0]).toEqual({ key: "code", required: true })
})

test("a template of the project takes the place of a default, and a broken one stops nobody", async () => {
  const project = await service.project()
  const texts = { subject: "Code {{code}}", text: "Yours: {{code}}", locale: "en" }
  const locales = { de: { subject: "Kode {{code}}", text: "Deiner: {{code}}" } }
  await project.post("/v1/templates", { name: "code", ...texts, locales })
  await project.post("/v1/templates", { name: "strict", ...texts, text: "{{nobody}} {{code}}" })
  const sentBy = async (name: string) => {
    const settings = { templates: { email_otp: name } }
    const environment = await (await newApplication(service, project, { settings })).environment()
    const to = { email: "ada@mailbox.test", locale: "de-AT" }
    const letter = { type: "email_otp" as const, to, variables: { code: "482913" } }
    const ready = await mail.prepare(environment, letter)
    const id = await service.store.tx((tx) => ready.accept(tx))
    return (await project.get(`/v1/emails/${id}`)).body.data
  }
  const own = await sentBy("code")
  expect([own.subject, own.text, own.template.name]).toEqual(["Kode ••••", "Deiner: ••••", "code"])
  expect((await sentBy("strict")).subject).toBe("•••• ist Ihr Code für Shop")
  expect((await sentBy("unknown")).template).toBeNull()
  await deliverAll(service)
})
