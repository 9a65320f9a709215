import { describe, expect, test } from "bun:test"
import { and, eq } from "drizzle-orm"
import { auditLog } from "../../../src/audit-log/tables"
import { insertOrganization } from "../../../src/auth/organization-rows"
import { joinOrganization } from "../../../src/auth/organizations/join"
import {
  memberships,
  organizationInvitations,
  organizations,
} from "../../../src/auth/organizations/tables"
import { environments, userLinks, users } from "../../../src/auth/tables"
import { newId } from "../../../src/core/ids"
import { now } from "../../../src/core/time"
import { newApplication, signedUp, type TestUser } from "../../harness/application"
import { type Reply, refusal } from "../../harness/client"
import { movableClock } from "../../harness/clock"
import type { ProjectOptions } from "../../harness/service"
import { sharedService } from "../../harness/shared-service"
import { letters } from "../letters"

const clock = movableClock()
const service = await sharedService()
const { store } = service
const arrived = letters(service)

const redirect_url = "https://app.example.test/welcome"
const PASSWORD = "correct-Horse-7"
const ACCEPT = "/v1/auth/organizations/invitations/accept"

async function team(options: ProjectOptions = {}, allowed_email_domains: string[] = []) {
  const project = await service.project(options)
  const app = await newApplication(service, project, { redirect_urls: [redirect_url] })
  const environment = await app.environment()
  const organization = await store.tx((tx) =>
    insertOrganization(tx, {
      ...{ id: newId(), project_id: project.project_id, application_id: app.id },
      ...{ environment_id: environment.id, name: "Acme", slug: "acme", metadata: {} },
      ...{ mfa_required: false, allowed_email_domains, created_at: now(), updated_at: now() },
    }),
  )
  const path = `/v1/auth/organizations/${organization.id}/invitations`
  const member = async (role: string) => {
    const user = await signedUp(service, app)
    const [row] = await store.read.select().from(users).where(eq(users.id, user.id))
    if (row) await store.tx((tx) => joinOrganization(tx, row, organization, role))
    return user
  }
  const invite = (email: string, fields: object = {}, by: Pick<TestUser, "post"> = project) =>
    by.post(path, { email, redirect_url, ...fields })
  return { project, app, environment, organization, path, member, invite }
}

const address = () => `${newId()}@mailbox.test`

/** Mails an invitation, and reads its token. */
async function invited({ invite }: Awaited<ReturnType<typeof team>>, email = address(), role = "") {
  const answer = await invite(email, role ? { role } : {})
  expect(answer.status).toBe(201)
  const token = (await arrived.last(email))?.token ?? ""
  return { id: answer.body.data.id as string, email, token }
}

const press = (token: string) =>
  service.anybody.call("POST", `/a/${token}`, {
    body: "",
    headers: { "content-type": "application/x-www-form-urlencoded" },
  })

const codeOf = ({ headers }: Reply) =>
  new URL(headers.get("location") ?? "about:blank").searchParams.get("code") ?? ""

const reasonOf = (reply: Reply) => [...refusal(reply), reply.body.error.details.reason]

const membershipOf = async (user_id: string, organization_id: string) => {
  const own = and(
    eq(memberships.user_id, user_id),
    eq(memberships.organization_id, organization_id),
  )
  return (await store.read.select().from(memberships).where(own))[0]
}

const statusesIn = async ({ project, path }: Awaited<ReturnType<typeof team>>) =>
  (await project.get(path)).body.data.map(({ status }: { status: string }) => status)

describe("an invitation", () => {
  test("is mailed, listed, and accepted by the user of the address", async () => {
    const acme = await team()
    const email = address()
    const answer = await acme.invite(email, { role: "editor" })
    const { id, expires_at, created_at } = answer.body.data
    expect(answer.body.data).toEqual({
      ...{ id, organization_id: acme.organization.id, email, role: "editor", status: "pending" },
      ...{ expires_at, created_at },
    })
    expect(Date.parse(expires_at) - Date.parse(created_at)).toBeLessThan(7 * 86_400_000 + 1000)
    const letter = await arrived.last(email)
    expect(letter?.subject).toContain("Acme")
    const ann = await signedUp(service, acme.app, { email, email_verified: true })
    const accepted = await ann.post(ACCEPT, { token: letter?.token })
    expect(accepted.status).toBe(200)
    expect(accepted.body.data).toMatchObject({
      ...{ organization_id: acme.organization.id, environment_id: acme.environment.id },
      ...{ end_user_id: ann.id, role: "editor", permissions: [] },
    })
    expect(await statusesIn(acme)).toEqual(["accepted"])
    expect(reasonOf(await acme.project.call("DELETE", `${acme.path}/${id}`))).toEqual([
      409,
      "conflict",
      "accepted",
    ])
    const again = await ann.post(ACCEPT, { token: letter?.token })
    expect(refusal(again)).toEqual([422, "otp_expired"])
    expect(reasonOf(await acme.invite(email))).toEqual([409, "conflict", "already_member"])
  })

  test("makes a new user, verified, with the code that its page hands over", async () => {
    const acme = await team()
    const { email, token } = await invited(acme, address(), "admin")
    const handed = await press(token)
    expect(handed.status).toBe(302)
    const register = (fields: object) =>
      acme.app.app().post("/v1/auth/users/register", { email, password: PASSWORD, ...fields })
    const wrong = { email: address(), invitation_token: codeOf(handed) }
    expect(refusal(await register(wrong))).toEqual([422, "otp_expired"])
    expect(refusal(await register({ invitation_token: token }))).toEqual([422, "otp_expired"])
    const made = await register({ invitation_token: codeOf(handed) })
    expect(made.status).toBe(201)
    const { user, tokens, organization } = made.body.data
    expect([user.email_verified, user.status]).toEqual([true, "active"])
    expect(tokens.access_token).toBeString()
    expect(organization.id).toBe(acme.environment.default_organization_id)
    expect((await membershipOf(user.id, acme.organization.id))?.role).toBe("admin")
    expect(await statusesIn(acme)).toEqual(["accepted"])
  })

  test("activates a user who was invited to the application, too, and asks a known one to sign in", async () => {
    const acme = await team()
    const both = address()
    const first = await acme.project.post("/v1/auth/users/invite", { email: both, redirect_url })
    await arrived.all(both) // so that the next mail is the last one
    const { token } = await invited(acme, both)
    const body = { email: both, password: PASSWORD, invitation_token: token }
    const made = await acme.app.app().post("/v1/auth/users/register", body)
    expect([made.status, made.body.data.user.id]).toEqual([201, first.body.data.id])
    const known = await invited(acme)
    await signedUp(service, acme.app, { email: known.email })
    const taken = { email: known.email, password: PASSWORD, invitation_token: known.token }
    const refused = await acme.app.app().post("/v1/auth/users/register", taken)
    expect(reasonOf(refused)).toEqual([409, "conflict", "email_taken"])
    expect(await statusesIn(acme)).toEqual(["pending", "accepted"])
  })

  test("to Default gives a new user its role there", async () => {
    const acme = await team()
    const { default_organization_id } = acme.environment
    const email = address()
    const path = `/v1/auth/organizations/${default_organization_id}/invitations`
    await acme.project.post(path, { email, redirect_url, role: "admin" })
    const invitation_token = (await arrived.last(email))?.token
    const body = { email, password: PASSWORD, invitation_token }
    const made = await acme.app.app().post("/v1/auth/users/register", body)
    expect(made.body.data.organization).toMatchObject({ role: "admin" })
  })

  test("of fifty who accept at once makes one member", async () => {
    const acme = await team()
    const { email, token } = await invited(acme)
    const ann = await signedUp(service, acme.app, { email, email_verified: true })
    const all = Array.from({ length: 50 }, () => ann.post(ACCEPT, { token }))
    const answers = (await Promise.all(all)).map(({ status }) => status).sort()
    expect(answers).toEqual([200, ...Array(49).fill(422)])
  })

  test("is for the verified address alone, and nobody accepts for somebody else", async () => {
    const acme = await team()
    const { email, token } = await invited(acme)
    const bob = await signedUp(service, acme.app, { email_verified: true })
    const ann = await signedUp(service, acme.app, { email })
    const mismatch = [403, "forbidden", "email_mismatch"]
    expect(reasonOf(await bob.post(ACCEPT, { token }))).toEqual(mismatch)
    expect(reasonOf(await ann.post(ACCEPT, { token }))).toEqual(mismatch)
    const other = address()
    const act = { id: newId(), reason: "ticket 4711" }
    const pretended = await signedUp(service, acme.app, { email: other, email_verified: true, act })
    const { token: theirs } = await invited(acme, other)
    const impersonated = await pretended.post(ACCEPT, { token: theirs })
    expect(reasonOf(impersonated)).toEqual([403, "forbidden", "impersonated"])
    const member = { email_verified: true, environment: "test" as const }
    const elsewhere = await signedUp(service, acme.app, { email, ...member })
    expect(refusal(await elsewhere.post(ACCEPT, { token }))).toEqual([422, "otp_expired"])
    expect(await statusesIn(acme)).toEqual(["pending", "pending"])
  })

  test("works no more after it was revoked or has expired", async () => {
    const acme = await team()
    const { id, email, token } = await invited(acme)
    const late = await invited(acme)
    const handed = codeOf(await press(token))
    const ann = await signedUp(service, acme.app, { email, email_verified: true })
    const one = `${acme.path}/${id}`
    expect((await acme.project.call("DELETE", one)).body.data).toEqual({ id, deleted: true })
    expect(refusal(await acme.project.call("DELETE", one))).toEqual([404, "not_found"])
    for (const dead of [token, handed])
      expect(refusal(await ann.post(ACCEPT, { token: dead }))).toEqual([422, "otp_expired"])
    expect((await acme.invite(email)).status).toBe(201)
    clock.advance({ seconds: 7 * 86_400 + 1 })
    expect((await service.anybody.call("GET", `/a/${late.token}`)).status).toBe(404)
    expect(await statusesIn(acme)).toEqual(["expired", "expired", "revoked"])
    expect((await acme.invite(late.email)).status).toBe(201)
    await arrived.all(late.email) // while the clock is ahead: no later test waits for this mail
  })
})

test("an invitation is exported and erased with the subscriber who has the address", async () => {
  const acme = await team()
  const { id, email, token } = await invited(acme)
  const other = await invited(acme)
  const person = { external_id: newId(), email: email.toUpperCase() }
  const { data } = (await acme.project.post("/v1/subscribers", person)).body
  const path = `/v1/subscribers/${data.id}`
  const whole = (await acme.project.get(`${path}/export`)).body.data
  expect(whole.organization_invitations).toMatchObject([{ id, email, status: "pending" }])
  await acme.project.post(`${path}/erase`, { confirm: person.external_id })
  const left = (await acme.project.get(acme.path)).body.data
  expect(left.map((row: { email: string }) => row.email)).toEqual([other.email])
  const links = store.read.select().from(userLinks).where(eq(userLinks.email, email))
  expect(await links).toEqual([])
  expect((await service.anybody.call("GET", `/a/${token}`)).status).toBe(404)
})

test("a user who is invited while the organization is deleted is in nothing that is left", async () => {
  for (let round = 0; round < 5; round++) {
    const { project, organization } = await team()
    const { id: organization_id } = organization
    const wanted = { email: address(), redirect_url, organization_id }
    const [made] = await Promise.all([
      project.post("/v1/auth/users/invite", wanted),
      project.call("DELETE", `/v1/auth/organizations/${organization_id}`),
    ])
    if (made.status !== 201) expect(refusal(made)).toEqual([404, "not_found"])
    const its = eq(memberships.organization_id, organization_id)
    expect(await store.read.select().from(memberships).where(its)).toEqual([])
  }
})

test.each([
  ["en", "You are invited", "Join"],
  ["de", "Sie sind eingeladen", "Treten Sie"],
  ["fr", "Vous avez une invitation", "Rejoignez"],
  ["es", "Tiene una invitación", "Únase a"],
  ["ar", "لديك دعوة", "انضم إلى"],
])("its page names the organization in %s, and changes nothing", async (lang, title, verb) => {
  const acme = await team()
  const { email, token } = await invited(acme)
  const { status, text } = await service.anybody.call("GET", `/a/${token}?lang=${lang}`)
  expect(status).toBe(200)
  expect(text).toContain(`<h1>${title}</h1>`)
  expect(text).toContain(`${verb} <bdi>Acme</bdi>`)
  expect(text).toContain(email)
  expect(await statusesIn(acme)).toEqual(["pending"])
  expect((await press(token)).status).toBe(302)
})

describe("who invites", () => {
  test("is an admin of the organization, and an owner where it is for an owner", async () => {
    const acme = await team()
    const [owner, admin, member] = [
      await acme.member("owner"),
      await acme.member("admin"),
      await acme.member("member"),
    ]
    const stranger = await signedUp(service, acme.app)
    expect(refusal(await acme.invite(address(), {}, member))).toEqual([403, "forbidden"])
    expect(refusal(await acme.invite(address(), {}, stranger))).toEqual([403, "forbidden"])
    expect(refusal(await member.get(acme.path))).toEqual([403, "forbidden"])
    const owning = { role: "owner" }
    expect(refusal(await acme.invite(address(), owning, admin))).toEqual([403, "forbidden"])
    expect((await acme.invite(address(), owning, owner)).status).toBe(201)
    const { id } = (await acme.invite(address(), {}, admin)).body.data
    expect((await admin.call("DELETE", `${acme.path}/${id}`)).status).toBe(200)
    const others = await team()
    expect(refusal(await others.project.get(acme.path))).toEqual([404, "not_found"])
  })

  test("is written down where it is a key, and a repeated request mails once", async () => {
    const acme = await team()
    const email = address()
    const headers = { "idempotency-key": newId() }
    const once = () =>
      acme.project.call("POST", acme.path, { body: { email, redirect_url }, headers })
    expect((await once()).body.data).toEqual((await once()).body.data)
    expect(await arrived.all(email)).toHaveLength(1)
    const [{ id }] = (await acme.project.get(acme.path)).body.data
    await acme.project.call("DELETE", `${acme.path}/${id}`)
    const its = eq(auditLog.target_id, acme.organization.id)
    const entries = await store.read.select().from(auditLog).where(its)
    const actions = entries.map(({ action }) => action).sort()
    expect(actions).toEqual(["organization.invitation_revoked", "organization.member_invited"])
  })

  test("is told what is wrong with the address, the redirect and the plan", async () => {
    const acme = await team({}, ["acme.test"])
    expect(reasonOf(await acme.invite("ann@other.test"))).toEqual([
      403,
      "forbidden",
      "email_domain_not_allowed",
    ])
    const open = await team()
    const nowhere = { redirect_url: `${redirect_url}/` }
    expect(refusal(await open.invite(address(), nowhere))).toEqual([422, "invalid_url"])
    const email = address()
    await open.invite(email)
    expect(reasonOf(await open.invite(email))).toEqual([409, "conflict", "already_invited"])
    const free = await team({ plan: "free" })
    expect(refusal(await free.invite(address()))).toEqual([403, "plan_upgrade_required"])
  })

  test("mails one address five times a day at most", async () => {
    const acme = await team()
    const email = address()
    for (let time = 0; time < 5; time += 1) {
      const { body } = await acme.invite(email)
      await acme.project.call("DELETE", `${acme.path}/${body.data.id}`)
    }
    expect(refusal(await acme.invite(email))).toEqual([429, "rate_limit_exceeded"])
    expect((await acme.invite(address())).status).toBe(201)
  })
})

test("1,000 invitations in seven days are the most of an organization", async () => {
  const acme = await team()
  const { project_id, environment_id, id: organization_id } = acme.organization
  expect((await acme.invite(address())).status).toBe(201)
  const row = { project_id, environment_id, organization_id, role: "member", created_at: now() }
  const ends = { expires_at: now(), accepted_at: null, revoked_at: null }
  const rows = Array.from({ length: 998 }, () => {
    const email = address()
    return { ...row, ...ends, id: newId(), email, email_key: email }
  })
  await store.tx((tx) => tx.insert(organizationInvitations).values(rows))
  expect((await acme.invite(address())).status).toBe(201)
  expect(reasonOf(await acme.invite(address()))).toEqual([409, "conflict", "too_many"])
})

describe("the domains that Default allows", () => {
  test("bind every sign-up, and let members stay", async () => {
    const { project, app, environment, invite } = await team()
    const before = await signedUp(service, app, { email: "old@other.test", email_verified: true })
    const allowed_email_domains = ["acme.test"]
    const { id, default_organization_id } = environment
    await store.tx(async (tx) => {
      const own = eq(organizations.id, default_organization_id)
      await tx.update(organizations).set({ allowed_email_domains }).where(own)
      await tx.update(environments).set({ allowed_email_domains }).where(eq(environments.id, id))
    })
    const refused = [403, "forbidden", "email_domain_not_allowed"]
    const other = { email: "new@other.test" }
    const post = (path: string, body: object) => app.app().post(`/v1/auth/${path}`, body)
    const register = await post("users/register", { ...other, password: PASSWORD })
    expect(reasonOf(register)).toEqual(refused)
    for (const path of ["email-otp/send", "magic-link/send"]) {
      const sent = await post(path, { ...other, redirect_url, purpose: "register" })
      expect(reasonOf(sent)).toEqual(refused)
    }
    expect(reasonOf(await project.post("/v1/auth/users", other))).toEqual(refused)
    const phone = { phone_number: "+4915112345678" }
    expect(reasonOf(await project.post("/v1/auth/users", phone))).toEqual(refused)
    expect(reasonOf(await invite(other.email))).toEqual(refused)
    const person = { ...other, redirect_url }
    expect(reasonOf(await project.post("/v1/auth/users/invite", person))).toEqual(refused)
    const people = { users: [other, { email: "ann@acme.test" }] }
    const { imported, failed } = (await project.post("/v1/auth/users/import", people)).body.data
    expect([imported, failed[0].index, failed[0].error.code]).toEqual([1, 0, "forbidden"])
    expect((await before.get("/v1/auth/users/me")).status).toBe(200)
    const ok = { email: "bob@ACME.test", password: PASSWORD }
    expect((await post("users/register", ok)).status).toBe(201)
  })
})
