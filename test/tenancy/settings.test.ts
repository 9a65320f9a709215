import { describe, expect, test } from "bun:test"
import { complaints, refusal } from "../harness/client"
import { deliverAll } from "../harness/delivery"
import { mail } from "../harness/mail"
import { team } from "../harness/people"
import { testService } from "../harness/service"
import { sharedService } from "../harness/shared-service"

const service = await sharedService()

const DEFAULTS = {
  default_from: null,
  default_reply_to: null,
  track_opens: null,
  track_clicks: null,
  allowed_origins: [],
  tracking_domain: null,
  sandbox: false,
  allow_subdomains: false,
  reply_tracking: false,
  inbound: { mode: "catch_all" },
  branding: { name: null, logo_url: null, primary_color: null, support_url: null },
  retention: {
    messages_days: 90,
    bodies_days: 30,
    inbound_days: 30,
    webhook_deliveries_days: 30,
    events_days: 30,
  },
  emit_machine_events: false,
  locale: "en",
  timezone: "UTC",
  quiet_hours: null,
  frequency_cap: null,
  auto_link_users: false,
  ai: {
    enabled: true,
    budget_usd: null,
    allowed_roles: ["admin", "developer"],
    blocked_tiers: [],
  },
}
const path = "/v1/settings"

type Project = Awaited<ReturnType<typeof service.project>>
const patch = (project: Project, body: unknown, headers = {}) =>
  project.call("PATCH", path, { body, headers })

test("begin with the defaults, and are merged: absent stays, null is the default", async () => {
  const project = await service.project()
  expect((await project.get(path)).body.data).toEqual(DEFAULTS)
  const from = { email: "bell@example.test", name: "Bell" }
  const changed = await patch(project, { default_from: from, sandbox: true })
  expect(changed.body.data).toEqual({ ...DEFAULTS, default_from: from, sandbox: true })
  expect((await project.get(path)).body.data).toEqual(changed.body.data)
  expect((await patch(project, { sandbox: true })).body.data).toEqual(changed.body.data)
  const reset = await patch(project, { default_from: null, sandbox: null })
  expect(reset.body.data).toEqual(DEFAULTS)
})

test("say what a project may use of AI, from the plan pro on", async () => {
  const project = await service.project({ plan: "pro" })
  const ai = { enabled: false, budget_usd: 2.5, allowed_roles: ["admin"], blocked_tiers: ["deep"] }
  for (const [name, value] of Object.entries(ai)) {
    expect((await patch(project, { ai: { [name]: value } })).status).toBe(200)
  }
  expect((await project.get(path)).body.data.ai).toEqual(ai)
  const reset = { enabled: null, budget_usd: null, allowed_roles: null, blocked_tiers: null }
  expect((await patch(project, { ai: reset })).body.data).toEqual(DEFAULTS)

  const small = await service.project({ plan: "starter" })
  const refused = await patch(small, { ai: { enabled: false } })
  expect(refusal(refused)).toEqual([403, "plan_upgrade_required"])
  const details = { feature: "ai", plan: "starter", required_plan: "pro" }
  expect(refused.body.error.details).toEqual(details)
  expect((await patch(small, { ai: null })).body.data).toEqual(DEFAULTS)
})

test("say which addresses take mail, and whether answers come back to an address of the email", async () => {
  const project = await service.project()
  const inbound = { mode: "routes" }
  const { body } = await patch(project, { inbound, reply_tracking: true })
  expect(body.data).toEqual({ ...DEFAULTS, inbound, reply_tracking: true })
  const reset = await patch(project, { inbound: { mode: null }, reply_tracking: null })
  expect(reset.body.data).toEqual(DEFAULTS)
})

test("keep of the branding what a change does not name", async () => {
  const project = await service.project()
  const branding = {
    name: "Acme",
    logo_url: "https://example.test/logo.png",
    primary_color: "#2457C5",
    support_url: "https://example.test/help?a=b",
  }
  expect((await patch(project, { branding })).body.data.branding).toEqual(branding)
  const changed = await patch(project, { branding: { name: " Bell ", logo_url: null } })
  expect(changed.body.data.branding).toEqual({ ...branding, name: "Bell", logo_url: null })
  expect((await patch(project, { sandbox: true })).body.data.branding.name).toBe("Bell")
  expect((await patch(project, { branding: null, sandbox: null })).body.data).toEqual(DEFAULTS)
})

test("complete quiet hours, and keep of them and of a cap what a change does not name", async () => {
  const project = await service.project()
  const first = await patch(project, {
    quiet_hours: {},
    frequency_cap: { count: 3, per_seconds: 60 },
  })
  expect(first.body.data).toMatchObject({
    quiet_hours: {
      enabled: true,
      start: "22:00",
      end: "08:00",
      timezone: null,
      channels: ["push", "sms"],
    },
    frequency_cap: { count: 3, per_seconds: 60 },
  })
  const timezone = "Asia/Kathmandu"
  const { data } = (
    await patch(project, {
      quiet_hours: { start: "21:30", timezone },
      frequency_cap: { count: 4 },
      locale: "de-AT",
      timezone,
      auto_link_users: true,
    })
  ).body
  expect(data).toEqual({
    ...DEFAULTS,
    quiet_hours: { ...first.body.data.quiet_hours, start: "21:30", timezone },
    frequency_cap: { count: 4, per_seconds: 60 },
    locale: "de-AT",
    timezone,
    auto_link_users: true,
  })
  const reset = await patch(
    project,
    Object.fromEntries(Object.keys(DEFAULTS).map((name) => [name, null])),
  )
  expect(reset.body.data).toEqual(DEFAULTS)
})

test("list origins as browsers write them, each once", async () => {
  const project = await service.project()
  const given = [
    "https://App.Example.test",
    "https://app.example.test:443/",
    "http://localhost:5173",
    "https://bücher.example",
    "capacitor://localhost",
    "https://[2001:DB8::1]:8443",
  ]
  const kept = [
    "https://app.example.test",
    "http://localhost:5173",
    "https://xn--bcher-kva.example",
    "capacitor://localhost",
    "https://[2001:db8::1]:8443",
  ]
  const { body } = await patch(project, { allowed_origins: given })
  expect(body.data.allowed_origins).toEqual(kept)
  const many = Array.from({ length: 100 }, (_, at) => `https://a${at}.test`)
  expect((await patch(project, { allowed_origins: many })).status).toBe(200)
  expect((await patch(project, { allowed_origins: null })).body.data).toEqual(DEFAULTS)
})

test("take a sender in every form", async () => {
  const project = await service.project()
  for (const [given, kept] of [
    ["a@example.test", { email: "a@example.test", name: null }],
    ["Ann <a@example.test>", { email: "a@example.test", name: "Ann" }],
    [{ email: "a@example.test" }, { email: "a@example.test", name: null }],
    [
      { email: "a@example.test", name: "Ann" },
      { email: "a@example.test", name: "Ann" },
    ],
  ]) {
    const { body } = await patch(project, { default_from: given })
    expect(body.data.default_from).toEqual(kept)
  }
})

test.each<[string, object, string]>([
  ["one that is not there", { colour: "red" }, "colour"],
  ["a budget below 0", { ai: { budget_usd: -1 } }, "ai.budget_usd"],
  ["no role for AI", { ai: { allowed_roles: [] } }, "ai.allowed_roles"],
  ["a viewer with AI", { ai: { allowed_roles: ["viewer"] } }, "ai.allowed_roles"],
  ["an unknown tier", { ai: { blocked_tiers: ["huge"] } }, "ai.blocked_tiers"],
  ["an unknown part of AI", { ai: { model: "x" } }, "ai.model"],
  ["one with routes of its own", { default_preferences: null }, "default_preferences"],
  ["a language by name", { locale: "de_AT" }, "locale"],
  ["an offset for a time zone", { timezone: "+02:00" }, "timezone"],
  ["a time zone that is not there", { timezone: "Europe/Atlantis" }, "timezone"],
  ["a text for quiet hours", { quiet_hours: "22-8" }, "quiet_hours"],
  ["a time that no clock shows", { quiet_hours: { start: "24:00" } }, "quiet_hours.start"],
  ["quiet hours of no length", { quiet_hours: { start: "08:00" } }, "quiet_hours.end"],
  ["a quiet inbox", { quiet_hours: { channels: ["in_app"] } }, "quiet_hours.channels"],
  ["a channel twice", { quiet_hours: { channels: ["sms", "sms"] } }, "quiet_hours.channels"],
  ["quiet hours without a switch", { quiet_hours: { enabled: null } }, "quiet_hours.enabled"],
  ["an unknown part of quiet hours", { quiet_hours: { days: [] } }, "quiet_hours.days"],
  ["a list for a cap", { frequency_cap: [1, 60] }, "frequency_cap"],
  ["half a cap", { frequency_cap: { count: 3 } }, "frequency_cap.per_seconds"],
  [
    "a cap that lets nothing through",
    { frequency_cap: { count: 0, per_seconds: 60 } },
    "frequency_cap.count",
  ],
  [
    "a cap of a year",
    { frequency_cap: { count: 1, per_seconds: 31_536_000 } },
    "frequency_cap.per_seconds",
  ],
  ["a word for the linking of users", { auto_link_users: "yes" }, "auto_link_users"],
  ["a text for origins", { allowed_origins: "https://a.test" }, "allowed_origins"],
  ["all pages of a domain", { allowed_origins: ["https://*.a.test"] }, "allowed_origins.0"],
  ["an origin with a path", { allowed_origins: ["https://a.test/x"] }, "allowed_origins.0"],
  ["an origin with a query", { allowed_origins: ["https://a.test?"] }, "allowed_origins.0"],
  ["an origin of every page", { allowed_origins: ["https://a.test", "*"] }, "allowed_origins.1"],
  ["an origin without a scheme", { allowed_origins: ["a.test"] }, "allowed_origins.0"],
  ["an origin with a user", { allowed_origins: ["https://a@b.test"] }, "allowed_origins.0"],
  ["an opaque origin", { allowed_origins: ["null"] }, "allowed_origins.0"],
  ["a script for an origin", { allowed_origins: ["javascript:a"] }, "allowed_origins.0"],
  ["a number for an origin", { allowed_origins: [7] }, "allowed_origins.0"],
  [
    "too many origins",
    { allowed_origins: Array.from({ length: 101 }, (_, at) => `https://a${at}.test`) },
    "allowed_origins",
  ],
  ["no host name", { tracking_domain: "https://t.example.test" }, "tracking_domain"],
  ["an address of a machine", { tracking_domain: "192.0.2.7" }, "tracking_domain"],
  ["a number for a host", { tracking_domain: 7 }, "tracking_domain"],
  ["a name of an object's own", { constructor: 1 }, "constructor"],
  ["no address", { default_from: "nobody" }, "default_from"],
  [
    "a name with a line break",
    { default_from: { email: "a@b.test", name: "x\ny" } },
    "default_from.name",
  ],
  ["two addresses", { default_reply_to: "a@b.test, c@d.test" }, "default_reply_to"],
  ["a word for a switch", { sandbox: "true" }, "sandbox"],
  ["a number for a switch", { reply_tracking: 1 }, "reply_tracking"],
  ["an inbound mode that is not there", { inbound: { mode: "some" } }, "inbound.mode"],
  ["an inbound that says nothing", { inbound: {} }, "inbound.mode"],
  ["a text for inbound", { inbound: "routes" }, "inbound.mode"],
  ["a text for the branding", { branding: "Acme" }, "branding"],
  ["an unknown part of the branding", { branding: { font: "serif" } }, "branding.font"],
  ["an empty name", { branding: { name: " " } }, "branding.name"],
  ["a name of two lines", { branding: { name: "a\nb" } }, "branding.name"],
  ["a long name", { branding: { name: "x".repeat(101) } }, "branding.name"],
  ["a logo by http", { branding: { logo_url: "http://a.test/l.png" } }, "branding.logo_url"],
  ["a logo as data", { branding: { logo_url: "data:image/png;base64," } }, "branding.logo_url"],
  [
    "a logo with a password",
    { branding: { logo_url: "https://a:b@c.test/" } },
    "branding.logo_url",
  ],
  ["a script for help", { branding: { support_url: "javascript:a" } }, "branding.support_url"],
  ["a color by name", { branding: { primary_color: "red" } }, "branding.primary_color"],
  ["a color that is more", { branding: { primary_color: "#fff;}" } }, "branding.primary_color"],
  ["an unknown part of inbound", { inbound: { mode: "routes", port: 25 } }, "inbound.port"],
])("refuse %s", async (_, body, field) => {
  const project = await service.project()
  const refused = await patch(project, { default_reply_to: "kept@example.test", ...body })
  expect(refused.status).toBe(422)
  expect(complaints(refused)).toEqual([field])
  expect((await project.get(path)).body.data).toEqual(DEFAULTS)
})

test("an unknown setting is named with those there are", async () => {
  const refused = await patch(await service.project(), { colors: null })
  expect(refusal(refused)).toEqual([422, "validation_error"])
  expect(refused.body.error.message).toContain(
    "default_from, default_reply_to, track_opens, track_clicks, allowed_origins, tracking_domain, sandbox, allow_subdomains",
  )
})

test("need their scopes, and of people the role of an admin to change them", async () => {
  const project = await service.project({ scopes: ["settings:read"] })
  expect((await project.get(path)).status).toBe(200)
  expect(refusal(await patch(project, {}))).toEqual([403, "forbidden"])
  const { owner, join } = await team(service)
  expect((await owner.patch(path, { sandbox: true })).body.data.sandbox).toBe(true)
  const billing = await join("billing_admin")
  expect(refusal(await billing.get(path))).toEqual([403, "forbidden"])
})

test("changes are in the audit log, with what was before", async () => {
  const { owner } = await team(service)
  await owner.patch(path, { default_reply_to: "help@example.test" })
  const { body } = await owner.get("/v1/audit-log?action=settings.updated")
  expect(body.data).toHaveLength(1)
  expect(body.data[0]).toMatchObject({
    action: "settings.updated",
    actor: { type: "user", id: owner.id },
    before: DEFAULTS,
    after: { ...DEFAULTS, default_reply_to: "help@example.test" },
  })
})

describe("the default sender", () => {
  test("stands in for what a send leaves out", async () => {
    const project = await service.project()
    const bare = mail({ from: undefined })
    const refused = await project.post("/v1/emails", bare)
    expect(refusal(refused)).toEqual([400, "sender_not_configured"])
    await patch(project, {
      default_from: "Bell <bell@example.test>",
      default_reply_to: "help@example.test",
    })
    const { id } = (await project.post("/v1/emails", bare)).body
    const sent = (await project.get(`/v1/emails/${id}`)).body.data
    expect(sent.from).toEqual({ email: "bell@example.test", name: "Bell" })
    expect(sent.reply_to).toEqual([{ email: "help@example.test", name: null }])

    const own = mail({ from: "other@example.test", reply_to: "me@example.test" })
    const other = (await project.post("/v1/emails", own)).body.id
    const told = (await project.get(`/v1/emails/${other}`)).body.data
    expect([told.from.email, told.reply_to[0].email]).toEqual([
      "other@example.test",
      "me@example.test",
    ])
  })

  test("must be of a verified domain like any other", async () => {
    const project = await service.project()
    await patch(project, { default_from: "a@unverified.test" })
    const refused = await project.post("/v1/emails", mail({ from: undefined }))
    expect(refusal(refused)).toEqual([400, "domain_not_verified"])
  })
})

describe("the sandbox", () => {
  const relay = { to_mailbox: false, mailbox_takes_all: false }

  test("goes to the embedded mailbox, whoever delivers otherwise, and counts no quota", async () => {
    await using own = await testService({ rules: relay })
    const project = await own.project({ limits: { emails_per_month: 1 } })
    const toAnybody = mail({ from: "bell@mailbox.test", to: "ann@anywhere.test" })
    expect(refusal(await project.post("/v1/emails", toAnybody))[0]).toBe(400)
    await project.call("PATCH", path, { body: { sandbox: true } })
    const ids: string[] = []
    for (let count = 0; count < 3; count++) {
      const { status, body } = await project.post("/v1/emails", toAnybody)
      expect(status).toBe(201)
      ids.push(body.id)
    }
    const told = (await project.get(`/v1/emails/${ids[0]}`)).body.data
    expect(told.sandbox).toBe(true)
    const { email } = (await project.get("/v1/usage")).body.data
    expect(email).toEqual({ used: 0, limit: 1, remaining: 1 })

    const handed = await deliverAll(own)
    expect(handed.map(({ message_id }) => message_id).sort()).toEqual(ids.sort())
    await project.call("PATCH", path, { body: { sandbox: false } })
    expect((await project.post("/v1/emails", mail())).status).toBe(201)
    expect(refusal(await project.post("/v1/emails", mail()))).toEqual([402, "payment_required"])
  })

  test("shows on the project, and needs a verified domain like everything else", async () => {
    const { owner, project_id } = await team(service)
    await owner.patch(path, { sandbox: true })
    expect((await owner.get(`/v1/projects/${project_id}`)).body.data.sandbox).toBe(true)
    const refused = await owner.post("/v1/emails", mail({ from: "a@unverified.test" }))
    expect(refusal(refused)).toEqual([400, "domain_not_verified"])
  })

  test("is 503 where the embedded mailbox does not run", async () => {
    await using own = await testService({ rules: { ...relay, has_mailbox: false } })
    const project = await own.project()
    await project.call("PATCH", path, { body: { sandbox: true } })
    const refused = await project.post("/v1/emails", mail())
    expect(refusal(refused)).toEqual([503, "service_unavailable"])
  })
})
