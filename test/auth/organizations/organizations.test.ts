import { describe, expect, test } from "bun:test"
import { and, eq } from "drizzle-orm"
import { auditLog } from "../../../src/audit-log/tables"
import {
  organizationDeleted,
  removeOrganization,
} from "../../../src/auth/organizations/removed-organizations"
import { memberships, organizationInvitations } from "../../../src/auth/organizations/tables"
import { userLinks } from "../../../src/auth/tables"
import { newId } from "../../../src/core/ids"
import { now, secondsFromNow } from "../../../src/core/time"
import { accounts } from "../../../src/identity/tables"
import { jobs } from "../../../src/jobs/tables"
import { newApplication } from "../../harness/application"
import { complaints, refusal } from "../../harness/client"
import { team } from "../../harness/people"
import { sharedService } from "../../harness/shared-service"
import { ORGANIZATIONS, organizationShop } from "./organization-shop"

const service = await sharedService()
const { store } = service

const one = (id: string) => `${ORGANIZATIONS}/${id}`
const membersOf = (id: string) => `${ORGANIZATIONS}/${id}/members`

const auditOf = async (id: string) => {
  const rows = await store.read.select().from(auditLog).where(eq(auditLog.target_id, id))
  return rows.map(({ action }) => action).sort()
}

describe("an organization", () => {
  test("is made by a user, who owns it, and by a server, for nobody", async () => {
    const shop = await organizationShop(service)
    const ann = await shop.user()
    const made = await ann.post(ORGANIZATIONS, { name: "Große Küche", metadata: { plan: "gold" } })
    expect(made.status).toBe(201)
    const { id } = made.body.data
    expect(made.body.data).toEqual({
      ...{ id, application_id: shop.application.id, environment: "live", name: "Große Küche" },
      ...{ slug: "grosse-kuche", is_default: false, mfa_required: false },
      ...{ allowed_email_domains: [], metadata: { plan: "gold" }, member_count: 1, role: "owner" },
      ...{ created_at: expect.any(String), updated_at: expect.any(String) },
    })
    expect(await auditOf(id)).toEqual([])
    const other = (await shop.server.post(ORGANIZATIONS, { name: "Große Küche" })).body.data
    expect(other).toMatchObject({ member_count: 0, slug: expect.stringMatching(/^grosse-kuche-/) })
    expect(other.role).toBeUndefined()
    expect(await auditOf(other.id)).toEqual(["organization.created"])
    const nameless = await shop.make({ name: "🍕" })
    expect((await shop.server.get(one(nameless))).body.data.slug).toBe("organization")
  })

  test("keeps to its limits, and its slug is its own within the environment", async () => {
    const { server, project, application } = await organizationShop(service)
    for (const [fields, path] of [
      [{ name: "" }, "name"],
      [{ slug: "Große" }, "slug"],
      [{ metadata: { large: "x".repeat(17_000) } }, "metadata"],
      [{ metadata: Object.fromEntries([...Array(51).keys()].map((n) => [n, 1])) }, "metadata"],
    ] as const) {
      const refused = await server.post(ORGANIZATIONS, { name: "Acme", ...fields })
      expect([path, refused.status, complaints(refused)[0]]).toEqual([path, 422, path])
    }
    expect((await server.post(ORGANIZATIONS, { name: "A", slug: "acme" })).status).toBe(201)
    const other = await server.post(ORGANIZATIONS, { name: "B", slug: "acme" })
    expect(refusal(other)).toEqual([409, "conflict"])
    expect(other.body.error.details.reason).toBe("slug_taken")
    const there = { name: "B", slug: "acme", environment: "test" }
    const apart = await server.post(ORGANIZATIONS, there)
    expect([apart.status, apart.body.data.environment]).toEqual([201, "test"])
    const named = await project.post(ORGANIZATIONS, { ...there, slug: "c" })
    expect(named.body.data.application_id).toBe(application.id)
    const third = (await server.post(ORGANIZATIONS, { name: "C" })).body.data
    const taken = await server.patch(one(third.id), { slug: "acme" })
    expect(refusal(taken)).toEqual([409, "conflict"])
    expect((await server.patch(one(third.id), { slug: third.slug, name: "D" })).status).toBe(200)
  })

  test("is made once by requests with the same slug at once", async () => {
    const { server } = await organizationShop(service)
    const wish = () => server.post(ORGANIZATIONS, { name: "Acme", slug: "acme" })
    const answers = await Promise.all(Array.from({ length: 5 }, wish))
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 409, 409, 409, 409])
  })

  test("is made by no user where the environment says none", async () => {
    const shop = await organizationShop(service, { organization_creation: "none" })
    const ann = await shop.user()
    expect(refusal(await ann.post(ORGANIZATIONS, { name: "A" }))).toEqual([403, "forbidden"])
    expect((await shop.server.post(ORGANIZATIONS, { name: "A" })).status).toBe(201)
  })

  test("is changed by admins and owners, in what is given", async () => {
    const shop = await organizationShop(service)
    const id = await shop.make({ metadata: { a: 1 } })
    const [ann, bob] = [await shop.user(), await shop.user()]
    await shop.seat(id, ann.id, "admin")
    await shop.seat(id, bob.id, "billing")
    const domains = ["ACME.example", "bücher.example", "acme.example"]
    const changed = await ann.patch(one(id), { mfa_required: true, allowed_email_domains: domains })
    expect(changed.body.data).toMatchObject({
      ...{ mfa_required: true, name: "Acme", metadata: { a: 1 }, role: "admin" },
      allowed_email_domains: ["acme.example", "xn--bcher-kva.example"],
    })
    const wrong = await ann.patch(one(id), { allowed_email_domains: ["a.example", "no domain"] })
    expect([wrong.status, ...complaints(wrong)]).toEqual([422, "allowed_email_domains.1"])
    const many = { allowed_email_domains: Array.from({ length: 101 }, (_, n) => `d${n}.example`) }
    expect((await ann.patch(one(id), many)).status).toBe(422)
    const refused = await bob.patch(one(id), { name: "B" })
    expect(refusal(refused)).toEqual([403, "forbidden"])
    expect(refused.body.error.details).toEqual({ required_role: "admin" })
    expect((await shop.server.patch(one(id), { name: "New" })).status).toBe(200)
    expect(await auditOf(id)).toEqual([
      ...["organization.created", "organization.member_added", "organization.member_added"],
      "organization.updated",
    ])
    const found = await shop.server.get(`${ORGANIZATIONS}?q=neW`)
    expect(found.body.data).toMatchObject([{ id, name: "New" }])
  })

  test("lets in nobody of elsewhere, and tells them nothing", async () => {
    const shop = await organizationShop(service)
    const id = await shop.make()
    const peer = await newApplication(service, shop.project)
    const strangers = [
      await shop.user({ environment: "test" }),
      peer.server(),
      (await organizationShop(service)).server,
      (await team(service)).owner,
    ]
    for (const who of strangers) {
      for (const path of [one(id), membersOf(id)])
        expect(refusal(await who.get(path))).toEqual([404, "not_found"])
      expect(refusal(await who.patch(one(id), { name: "x" }))).toEqual([404, "not_found"])
      expect(refusal(await who.remove(one(id)))).toEqual([404, "not_found"])
    }
    const stranger = await shop.user()
    for (const answer of [await stranger.get(one(id)), await stranger.remove(one(id))])
      expect(refusal(answer)).toEqual([403, "forbidden"])
    const beside = { "x-application-key": shop.application.keys.test }
    expect(refusal(await shop.server.get(one(id), beside))).toEqual([404, "not_found"])
    for (const unknown of ["x", newId()])
      expect(refusal(await shop.server.get(one(unknown)))).toEqual([404, "not_found"])
  })

  test("is listed to its members with their role, and to servers by environment and text", async () => {
    const shop = await organizationShop(service)
    const ann = await shop.user()
    const ids: string[] = []
    for (const name of ["Alpha", "Beta_1", "Gamma"]) ids.push(await shop.make({ name }))
    const there = await shop.make({ name: "Beta elsewhere", environment: "test" })
    await shop.seat(ids[1] ?? "", ann.id, "admin")
    const mine = (await ann.get(ORGANIZATIONS)).body
    const shown = mine.data.map(({ name, role }: Record<string, string>) => [name, role])
    expect(shown).toEqual([
      ["Beta_1", "admin"],
      ["Default", "member"],
    ])
    expect(mine.meta.total).toBe(2)
    const namesOf = async (query: string) => {
      const { data } = (await shop.server.get(`${ORGANIZATIONS}?${query}`)).body
      return data.map(({ name }: { name: string }) => name)
    }
    expect(await namesOf("")).toEqual(["Gamma", "Beta_1", "Alpha", "Default"])
    expect(await namesOf("q=beta_")).toEqual(["Beta_1"])
    expect(await namesOf("q=beta&environment=test")).toEqual(["Beta elsewhere"])
    expect(await namesOf(`user_id=${ann.id}`)).toEqual(["Beta_1", "Default"])
    expect((await ann.get(`${ORGANIZATIONS}?q=defau`)).body.data).toHaveLength(1)
    const unknown = await shop.server.get(`${ORGANIZATIONS}?user_id=${newId()}`)
    expect(refusal(unknown)).toEqual([404, "user_not_found"])
    const first = (await shop.server.get(`${ORGANIZATIONS}?per_page=3`)).body
    expect(first.meta).toMatchObject({ total: 4, total_pages: 2, has_more: true })
    const after = await ann.get(`${ORGANIZATIONS}?after=${there}`)
    expect(after.status).toBe(422)
  })
})

describe("the Default organization", () => {
  test("is changed as others, and binds sign-ups by its domains", async () => {
    const shop = await organizationShop(service)
    const { default_organization_id: id } = await shop.application.environment()
    const ann = await shop.user({ email: "ann@elsewhere.test" })
    const rules = { allowed_email_domains: ["acme.test"], mfa_required: true }
    const changed = await shop.server.patch(one(id), rules)
    expect(changed.body.data).toMatchObject({ is_default: true, member_count: 1, ...rules })
    expect((await shop.application.environment()).allowed_email_domains).toEqual(["acme.test"])
    const add = (email: string) => shop.server.post("/v1/auth/users", { email })
    const refused = await add("bob@elsewhere.test")
    expect(refused.body.error.details.reason).toBe("email_domain_not_allowed")
    expect((await add("bob@acme.test")).status).toBe(201)
    expect(Object.keys(await shop.rolesIn(id))).toContain(ann.id)
  })

  test("is neither deleted nor left", async () => {
    const shop = await organizationShop(service)
    const { default_organization_id: id } = await shop.application.environment()
    const ann = await shop.user()
    await shop.server.patch(`${membersOf(id)}/${ann.id}`, { role: "owner" })
    const tries = [
      shop.server.remove(one(id)),
      ann.remove(one(id)),
      ann.post(`${one(id)}/leave`),
      shop.server.remove(`${membersOf(id)}/${ann.id}`),
      shop.seat(id, ann.id),
    ]
    for (const answer of await Promise.all(tries))
      expect(refusal(answer)).toEqual([409, "conflict"])
    expect(await shop.rolesIn(id)).toEqual({ [ann.id]: "owner" })
  })
})

describe("a plan", () => {
  test("of the smallest two has the Default organization alone", async () => {
    for (const plan of ["free", "starter"]) {
      const shop = await organizationShop(service, { plan })
      const ann = await shop.user()
      for (const who of [shop.server, ann])
        expect(refusal(await who.post(ORGANIZATIONS, { name: "A" }))).toEqual([
          ...[403, "plan_upgrade_required"],
        ])
      const { default_organization_id: id } = await shop.application.environment()
      expect((await shop.server.patch(one(id), { name: "All" })).status).toBe(200)
    }
  })

  test("that became smaller keeps organizations to be read, left and deleted", async () => {
    const shop = await organizationShop(service, { plan: "pro" })
    const id = await shop.make()
    const [ann, bob, eve] = [await shop.user(), await shop.user(), await shop.user()]
    await shop.seat(id, ann.id, "owner")
    await shop.seat(id, bob.id)
    const own = eq(accounts.id, shop.project.account_id)
    await store.tx((tx) => tx.update(accounts).set({ plan: "free" }).where(own))
    const refused = [
      ann.patch(one(id), { name: "B" }),
      shop.server.patch(one(id), { name: "B" }),
      shop.seat(id, eve.id),
      ann.patch(`${membersOf(id)}/${bob.id}`, { role: "admin" }),
      ann.post(ORGANIZATIONS, { name: "B" }),
    ]
    for (const answer of await Promise.all(refused))
      expect(refusal(answer)).toEqual([403, "plan_upgrade_required"])
    for (const path of [ORGANIZATIONS, one(id), membersOf(id)])
      expect((await ann.get(path)).status).toBe(200)
    expect((await bob.post(`${one(id)}/leave`)).status).toBe(200)
    expect((await ann.remove(one(id))).status).toBe(200)
  })
})

describe("a deleted organization", () => {
  test("is gone at once, and leaves nothing", async () => {
    const shop = await organizationShop(service)
    const id = await shop.make()
    const [ann, bob] = [await shop.user(), await shop.user()]
    await shop.seat(id, ann.id, "owner")
    await shop.seat(id, bob.id, "admin")
    const { environment_ids, project_id } = shop.application
    const named = { project_id, environment_id: environment_ids.live, created_at: now() }
    const at = { expires_at: secondsFromNow(60), email: "eve@users.test" }
    const invitation = { id: newId(), organization_id: id, email_key: at.email, role: "member" }
    const link = { token_hash: newId(), kind: "organization_invitation" as const }
    await store.tx(async (tx) => {
      await tx.insert(organizationInvitations).values({ ...invitation, ...named, ...at })
      await tx.insert(userLinks).values({ ...link, invitation_id: invitation.id, ...named, ...at })
      const more = Array.from({ length: 450 }, () => ({
        ...{ id: newId(), organization_id: id, user_id: newId(), role: "member" },
        ...{ permissions: [], ...named, updated_at: now() },
      }))
      await tx.insert(memberships).values(more)
    })
    expect(refusal(await bob.remove(one(id)))).toEqual([403, "forbidden"])
    expect((await ann.remove(one(id))).body.data).toEqual({ id, deleted: true })
    for (const answer of [await ann.get(one(id)), await shop.server.remove(one(id))])
      expect(refusal(answer)).toEqual([404, "not_found"])
    expect((await ann.get(ORGANIZATIONS)).body.data).toHaveLength(1)
    const wanted = and(eq(jobs.name, organizationDeleted.name), eq(jobs.project_id, project_id))
    const [job] = await store.read.select().from(jobs).where(wanted)
    expect(job?.payload).toEqual({ id, project_id })
    for (const _ of ["once", "again"])
      await removeOrganization(store).run({ id, project_id }, {} as never)
    for (const rows of [memberships, organizationInvitations]) {
      const left = store.read.select().from(rows).where(eq(rows.organization_id, id))
      expect(await left).toEqual([])
    }
    const links = eq(userLinks.invitation_id, invitation.id)
    expect(await store.read.select().from(userLinks).where(links)).toEqual([])
  })
})
