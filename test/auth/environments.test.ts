import { describe, expect, onTestFinished, test } from "bun:test"
import { and, eq } from "drizzle-orm"
import { auditLog } from "../../src/audit-log/tables"
import { requireCaptcha } from "../../src/auth/captcha"
import { ENVIRONMENT_DEFAULTS, MAIL_TYPES } from "../../src/auth/environment-settings"
import { requireEmailDomain, requireMethod } from "../../src/auth/methods"
import { environments } from "../../src/auth/tables"
import { newId } from "../../src/core/ids"
import { receiver } from "../fakes/receiver"
import { newApplication } from "../harness/application"
import { complaints, refusal } from "../harness/client"
import type { TestProject } from "../harness/service"
import { sharedService } from "../harness/shared-service"

const service = await sharedService()
const { store } = service

async function made() {
  const project = await service.project()
  const shop = await newApplication(service, project)
  const path = `/v1/auth/applications/${shop.id}/environments`
  const patch = (body: object, name = "live") => project.call("PATCH", `${path}/${name}`, { body })
  return { project, shop, path, patch }
}

const template = async (project: TestProject, fields: object) => {
  const { status, body, text } = await project.post("/v1/templates", fields)
  if (status !== 201) throw new Error(text)
  return body.data
}

describe("an environment", () => {
  test("begins with the defaults, and shows every setting", async () => {
    const { project, shop, path } = await made()
    const none = Object.fromEntries(MAIL_TYPES.map((type) => [type, null]))
    const { default_organization_id } = await shop.environment()
    const live = (await project.get(`${path}/live`)).body.data
    expect(live).toEqual({
      ...{ name: "live", status: "active", ...ENVIRONMENT_DEFAULTS },
      ...{ templates: none, default_organization_id },
    })
    const { data } = (await project.get(path)).body
    expect(data.map(({ name }: { name: string }) => name)).toEqual(["live", "test"])
    expect(data[0]).toEqual(live)
    expect(refusal(await project.get(`${path}/staging`))).toEqual([404, "not_found"])
  })

  test("keeps what a change does not name, also within a setting, and null is the default", async () => {
    const { patch, project, path } = await made()
    const wanted = {
      allowed_origins: ["https://shop.example.com"],
      redirect_urls: ["https://shop.example.com/in"],
      blocked_email_domains: ["bücher.example", "Example.NET"],
      passkey_rp_id: "example.com",
      bundle_ids: ["com.example.shop"],
      android_packages: ["com.example.shop"],
      methods: { password: false },
      session: { max_sessions: 3 },
      password_policy: { min_length: 12 },
      mfa: { policy: "required" },
      hide_account_existence: true,
      require_verified_email: true,
      organization_creation: "members",
      sender: "Shop <login@example.test>",
      token_claims: ["plan", "plan", "seats"],
      test_identifiers: [
        { email: "review@example.com", code: "123456" },
        { phone_number: "+4915112345678", code: "654321" },
      ],
      sms_origin: "example.com",
      android_sms_hash: "FA+9qCX9VSu",
    }
    const changed = await patch(wanted)
    expect([changed.status, changed.body.error]).toEqual([200, undefined])
    expect(changed.body.data).toMatchObject({
      ...wanted,
      blocked_email_domains: ["xn--bcher-kva.example", "example.net"],
      methods: { ...ENVIRONMENT_DEFAULTS.methods, password: false },
      password_policy: { ...ENVIRONMENT_DEFAULTS.password_policy, min_length: 12 },
      mfa: { policy: "required", methods: ["totp", "sms", "email"] },
      sender: { email: "login@example.test", name: "Shop" },
      token_claims: ["plan", "seats"],
    })
    await patch({ methods: { phone_otp: true }, password_policy: { history: 8 } })
    const { methods, password_policy } = (await project.get(`${path}/live`)).body.data
    expect(methods).toMatchObject({ password: false, phone_otp: true })
    expect(password_policy).toMatchObject({ min_length: 12, history: 8 })
    const echoed = await patch((await project.get(`${path}/live`)).body.data)
    expect(echoed.status).toBe(200)
    const reset = Object.fromEntries(Object.keys(wanted).map((name) => [name, null]))
    const { data } = (await patch(reset)).body
    expect(data).toMatchObject({ ...ENVIRONMENT_DEFAULTS, templates: expect.any(Object) })
    expect(data.methods).toEqual(ENVIRONMENT_DEFAULTS.methods)
    expect((await project.get(`${path}/test`)).body.data.mfa.policy).toBe("optional")
  })

  test("refuses what no setting can be", async () => {
    const { patch } = await made()
    const bad: Record<string, unknown> = {
      allowed_origins: "https://x.example",
      blocked_email_domains: ["@example.com"],
      passkey_rp_id: "https://example.com",
      bundle_ids: ["shop"],
      android_packages: ["com.1x"],
      "methods.password": { password: "no" },
      "methods.sms": { sms: true },
      "session.max_sessions": { max_sessions: 0 },
      "password_policy.min_length": { min_length: 7 },
      "password_policy.require_special": { require_special: false },
      "password_policy.history": { history: 4 },
      "mfa.policy": { policy: "sometimes" },
      "mfa.methods": { methods: ["passkey"] },
      hide_account_existence: "yes",
      organization_creation: "all",
      "templates.receipt": { receipt: "x" },
      token_claims: Array.from({ length: 11 }, (_, n) => `c${n}`),
      captcha: { provider: "other", secret: "x" },
      test_identifiers: [{ email: "a@b.example", phone_number: "+4915112345678", code: "123456" }],
      sms_origin: "https://example.com",
      android_sms_hash: "short",
    }
    for (const [path, value] of Object.entries(bad)) {
      const [name = ""] = path.split(".")
      const answer = await patch({ [name]: value })
      expect([path, answer.status]).toEqual([path, 422])
      expect(complaints(answer)).toEqual([path])
    }
    for (const test_identifiers of [
      [{ code: "123456" }],
      [{ email: "a@b.example", code: "12345" }],
      [{ email: "no address", code: "123456" }],
      Array.from({ length: 11 }, (_, n) => ({ email: `a${n}@b.example`, code: "123456" })),
    ])
      expect(complaints(await patch({ test_identifiers }))).toEqual(["test_identifiers"])
    expect(refusal(await patch({ sender: "nobody" }))).toEqual([422, "invalid_email"])
    expect((await patch({ nothing: true })).body.error.details.fields[0].code).toBe(
      "nothing_to_change",
    )
    for (const field of ["allowed_origins", "redirect_urls"]) {
      const wrong = await patch({ [field]: ["http://shop.example.com"] })
      expect(refusal(wrong)).toEqual([422, "invalid_url"])
      expect(complaints(wrong)).toEqual([`${field}.0`])
    }
  })

  test("takes a sender that may send, and any in test", async () => {
    const { patch } = await made()
    const sender = { email: "login@unverified.example" }
    expect(refusal(await patch({ sender }))).toEqual([400, "domain_not_verified"])
    expect((await patch({ sender }, "test")).status).toBe(200)
  })

  test("has its changes in the audit log, without secrets", async () => {
    const { patch, shop } = await made()
    const secret = "a-very-secret-text-1234"
    await patch({ captcha: { provider: "turnstile", secret }, methods: { password: false } })
    await patch({ test_identifiers: [{ email: "a@example.com", code: "998877" }] })
    const mine = eq(auditLog.target_id, shop.environment_ids.live)
    const rows = await store.read.select().from(auditLog).where(mine)
    expect(rows.map(({ action }) => action)).toEqual(["environment.updated", "environment.updated"])
    expect(rows[0]?.after).toMatchObject({ methods: { password: false } })
    expect(JSON.stringify(rows)).not.toMatch(/very-secret|998877/)
  })
})

describe("templates of mails", () => {
  const LINKED = { name: "login", subject: "Sign in", html: '<a href="{{link}}">in</a>' }

  test("are named by id or name, and must be published and use what a mail is for", async () => {
    const { project, patch } = await made()
    const set = (name: string, type = "magic_link") => patch({ templates: { [type]: name } })
    const { id } = await template(project, LINKED)
    for (const name of [id, "login"]) {
      const { data } = (await set(name)).body
      expect(data.templates).toMatchObject({ magic_link: id, email_otp: null })
    }
    await template(project, { name: "draft", html: "{{link}}", draft: true })
    for (const name of ["draft", "nothing", newId()])
      expect(refusal(await set(name))).toEqual([404, "template_not_found"])
    await template(project, { name: "text", channels: { sms: { body: "{{link}}" } } })
    await template(project, {
      ...{ name: "german", html: "{{link}}", locale: "en" },
      locales: { de: { html: "ohne" } },
    })
    await template(project, { name: "half", html: "{{link}}", text: "see the html" })
    for (const [name, field] of [
      ["text", "html"],
      ["german", "locales.de.html"],
      ["half", "text"],
    ] as const) {
      const refused = await set(name)
      expect([name, ...refusal(refused)]).toEqual([name, 422, "invalid_template"])
      expect(refused.body.error.details).toMatchObject({ field, reason: "missing" })
    }
    expect(refusal(await set(id, "email_otp"))).toEqual([422, "invalid_template"])
    expect((await set(id, "password_changed")).status).toBe(200)
    await template(project, { name: "button", html: "{{#if link}}{{{link}}}{{/if}}" })
    await template(project, { name: "outer", html: "{{> button}}" })
    expect((await set("outer")).status).toBe(200)
    const cleared = await patch({ templates: { magic_link: null } })
    expect(cleared.body.data.templates).toMatchObject({ magic_link: null, password_changed: id })
  })

  test("can neither go nor lose it, by any route", async () => {
    const { project, patch } = await made()
    const { id } = await template(project, LINKED)
    const path = `/v1/templates/${id}`
    await project.call("PATCH", path, { body: { html: "none" } })
    await project.post(`${path}/rollback`, { version: 1 })
    expect((await patch({ templates: { magic_link: id } })).status).toBe(200)

    const bare = { name: "login", html: "none" }
    const writes = {
      patch: () => project.call("PATCH", path, { body: { html: "none" } }),
      put: () => project.call("PUT", path, { body: bare }),
      rollback: () => project.post(`${path}/rollback`, { version: 2 }),
      publish: () => project.post(`${path}/publish`, { version: 2 }),
    }
    for (const [name, write] of Object.entries(writes))
      expect([name, ...refusal(await write())]).toEqual([name, 422, "invalid_template"])
    const draft = await project.call("PUT", path, { body: { ...bare, draft: true } })
    expect(draft.status).toBe(200)
    expect(refusal(await project.post(`${path}/publish`, {}))).toEqual([422, "invalid_template"])

    for (const answer of [
      await project.call("DELETE", path),
      await project.post(`${path}/archive`),
    ]) {
      expect(refusal(answer)).toEqual([409, "conflict"])
      expect(answer.body.error.details.used_by.environments).toEqual(["Shop live"])
    }
    await patch({ templates: null })
    expect((await project.post(`${path}/archive`)).status).toBe(200)
  })
})

describe("the captcha of an environment", () => {
  const asking = async (answer: () => Response) => {
    const { shop, patch } = await made()
    const there = receiver(answer)
    onTestFinished(() => there[Symbol.dispose]())
    const secret = "0x4AAAAAAA-secret-key"
    const { data } = (await patch({ captcha: { provider: "hcaptcha", secret } })).body
    const settings = { "auth.captcha.endpoint": there.url }
    const parts = { secrets: service.parts.secrets, settings }
    const environment = await shop.environment()
    const ask = (captcha_token?: string, kind: "app" | "key" = "app") =>
      requireCaptcha(parts, environment, {
        ...{ body: { captcha_token }, ip: "192.0.2.7", caller: { kind } as never },
      })
    return { shop, shown: data.captcha, there, ask, secret, patch }
  }

  test("is asked for with the secret, which is sealed and shown by its end", async () => {
    const { shop, shown, there, ask, secret, patch } = await asking(() =>
      Response.json({ success: true }),
    )
    expect(shown).toEqual({ provider: "hcaptcha", secret: "****-key" })
    const own = and(eq(environments.application_id, shop.id), eq(environments.name, "live"))
    const [row] = await store.read.select().from(environments).where(own)
    expect(JSON.stringify(row)).not.toContain(secret)
    expect(row?.captcha_secret).toMatch(/^v1\./)
    await ask("good")
    expect(new URLSearchParams(there.received[0]?.body)).toEqual(
      new URLSearchParams({ secret, response: "good", remoteip: "192.0.2.7" }),
    )
    await ask(undefined, "key")
    expect(there.received).toHaveLength(1)
    expect(complaints(await patch({ captcha: shown }))).toEqual(["captcha"])
    expect((await patch({ captcha: null })).body.data.captcha).toBeNull()
  })

  test("refuses a call without it or with a bad one, and says when it cannot ask", async () => {
    const told = (work: Promise<unknown>) =>
      work.then(
        () => "passed",
        ({ code, details }) => [code, details.fields?.[0].path ?? details.reason],
      )
    const bad = await asking(() => Response.json({ success: false }))
    for (const token of ["bad", "", undefined])
      expect(await told(bad.ask(token))).toEqual(["validation_error", "captcha_token"])
    const broken = await asking(() => new Response("oops", { status: 500 }))
    expect(await told(broken.ask("good"))).toEqual(["service_unavailable", "captcha"])
  })
})

describe("what an app may know", () => {
  test("is its ways in, its rules for passwords, and how pages look", async () => {
    const { shop, patch, project } = await made()
    await patch({ methods: { anonymous: true }, password_policy: { min_length: 10 } })
    const { data } = (await shop.app().get("/v1/auth/config")).body
    const rules = { require_uppercase: true, require_lowercase: true, require_numbers: true }
    const requirements = { min_length: 10, ...rules, require_special: true }
    expect(data).toEqual({
      methods: { ...ENVIRONMENT_DEFAULTS.methods, anonymous: true },
      oauth_providers: [],
      password_requirements: requirements,
      mfa_policy: "optional",
      branding: { name: "Shop", logo_url: null, primary_color: null, support_url: null },
    })
    await project.call("PATCH", "/v1/settings", { body: { branding: { name: "Acme" } } })
    expect((await shop.app().get("/v1/auth/config")).body.data.branding.name).toBe("Acme")
    expect(refusal(await shop.app("legacy").get("/v1/auth/config"))).toEqual([
      400,
      "environment_required",
    ])
    const path = "/v1/auth/password-requirements"
    expect((await shop.app().get(path)).body.data).toEqual(requirements)
    expect((await shop.app("legacy").get(path)).body.data.min_length).toBe(8)
  })

  test("is what its key is for, and its secret reaches that one alone", async () => {
    const { shop, project } = await made()
    const self = async (kind: "live" | "test" | "legacy") =>
      (await shop.app(kind).get("/v1/auth/applications/self")).body.data
    const own = { id: shop.id, name: "Shop", slug: shop.id }
    expect(await self("test")).toEqual({ ...own, environment: "test", key_type: "environment" })
    expect(await self("legacy")).toEqual({ ...own, environment: null, key_type: "legacy" })
    const other = await newApplication(service, project)
    const all = "/v1/auth/applications"
    const { data } = (await shop.server().get(all)).body
    expect(data.map(({ id }: { id: string }) => id)).toEqual([shop.id])
    expect((await shop.server().get(`${all}/${shop.id}`)).status).toBe(200)
    expect((await shop.server().get(`${all}/${other.id}/keys`)).status).toBe(404)
    expect((await shop.server().post(all, { name: "More" })).status).toBe(403)
  })

  test("is refused where a method is off, and for addresses of blocked domains", async () => {
    const { shop, patch } = await made()
    await patch({ blocked_email_domains: ["bücher.example"] })
    const environment = await shop.environment()
    expect(() => requireMethod(environment, "phone_otp")).toThrow("phone_otp is off")
    requireMethod(environment, "password")
    for (const email of ["a@Bücher.example", "a@xn--bcher-kva.example"])
      expect(() => requireEmailDomain(environment, email)).toThrow("not let in")
    requireEmailDomain(environment, "a@other.example")
  })
})
