import { describe, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { auditLog } from "../../../src/audit-log/tables"
import { joinOrganization } from "../../../src/auth/organizations/join"
import { memberships, organizations } from "../../../src/auth/organizations/tables"
import { users } from "../../../src/auth/tables"
import { newId } from "../../../src/core/ids"
import { now } from "../../../src/core/time"
import { newApplication } from "../../harness/application"
import { complaints, type Reply, refusal } from "../../harness/client"
import { sharedService } from "../../harness/shared-service"
import { ORGANIZATIONS, organizationShop } from "./organization-shop"

const service = await sharedService()
const { store } = service

const membersOf = (id: string) => `${ORGANIZATIONS}/${id}/members`
const leave = (id: string) => `${ORGANIZATIONS}/${id}/leave`

const reason = ({ body }: Reply) => body.error.details.reason

/** An organization with an owner, an admin and a member. */
async function staffed() {
  const shop = await organizationShop(service)
  const id = await shop.make()
  const [owner, admin, member] = [await shop.user(), await shop.user(), await shop.user()]
  await shop.seat(id, owner.id, "owner")
  await shop.seat(id, admin.id, "admin")
  await shop.seat(id, member.id)
  const at = (user_id: string) => `${membersOf(id)}/${user_id}`
  return { shop, id, owner, admin, member, at }
}

describe("a member", () => {
  test("is added by a server, with a role and permissions", async () => {
    const shop = await organizationShop(service)
    const id = await shop.make()
    const ann = await shop.user({ name: "Ann" })
    const wanted = { user_id: ann.id, role: "billing", permissions: ["invoices:read"] }
    const made = await shop.server.post(membersOf(id), wanted)
    expect(made.status).toBe(201)
    const record = {
      ...{ id: expect.any(String), organization_id: id, end_user_id: ann.id, role: "billing" },
      ...{ environment_id: shop.application.environment_ids.live, permissions: ["invoices:read"] },
      ...{ created_at: expect.any(String), updated_at: expect.any(String) },
    }
    expect(made.body.data).toEqual(record)
    const listed = (await ann.get(membersOf(id))).body
    expect(listed.data).toEqual([{ ...record, email: ann.email, name: "Ann" }])
    expect(listed.meta.total).toBe(1)
    const again = await shop.server.post(membersOf(id), wanted)
    expect([...refusal(again), reason(again)]).toEqual([409, "conflict", "already_member"])
    expect(refusal(await ann.post(membersOf(id), wanted))).toEqual([403, "forbidden"])
    const entry = eq(auditLog.target_id, id)
    const [entries] = [await store.read.select().from(auditLog).where(entry)]
    expect(entries.at(-1)).toMatchObject({ action: "organization.member_added" })
    expect(entries.at(-1)?.after).toMatchObject({ end_user_id: ann.id, role: "billing" })
  })

  test("is a user of the same environment, with an address in an allowed domain", async () => {
    const shop = await organizationShop(service)
    const id = await shop.make()
    const peer = await newApplication(service, shop.project)
    const there = await shop.user({ environment: "test" })
    for (const user_id of [there.id, newId()]) {
      for (const who of [shop.server, shop.project])
        expect(refusal(await who.post(membersOf(id), { user_id }))).toEqual([404, "user_not_found"])
    }
    expect(refusal(await peer.server().post(membersOf(id), { user_id: newId() }))).toEqual([
      ...[404, "not_found"],
    ])
    const ann = await shop.user({ email: "ann@acme.test" })
    const [bob, eve] = [await shop.user({ email: "bob@acme.test.evil.test" }), await shop.user()]
    await shop.seat(id, eve.id)
    await shop.server.patch(`${ORGANIZATIONS}/${id}`, { allowed_email_domains: ["acme.test"] })
    expect((await shop.seat(id, ann.id)).status).toBe(201)
    const refused = await shop.seat(id, bob.id)
    expect([...refusal(refused), reason(refused)]).toEqual([
      ...[403, "forbidden", "email_domain_not_allowed"],
    ])
    expect(Object.keys(await shop.rolesIn(id)).sort()).toEqual([ann.id, eve.id].sort())
    expect(await shop.wrongTotals()).toEqual([])
  })

  test("has a role of 64 characters and 50 permissions at most", async () => {
    const { shop, member, at } = await staffed()
    for (const [fields, path] of [
      [{ role: "r".repeat(65) }, "role"],
      [{ role: "" }, "role"],
      [{ permissions: Array.from({ length: 51 }, (_, n) => `p${n}`) }, "permissions"],
      [{ permissions: ["p".repeat(65)] }, "permissions.0"],
    ] as const) {
      const refused = await shop.server.patch(at(member.id), fields)
      expect([refused.status, ...complaints(refused)]).toEqual([422, path])
    }
    const most = {
      role: "r".repeat(64),
      permissions: Array.from({ length: 50 }, (_, n) => `p${n}`),
    }
    expect((await shop.server.patch(at(member.id), most)).body.data).toMatchObject(most)
  })

  test("of 1,000 organizations joins no more", async () => {
    const shop = await organizationShop(service)
    const [ann, id] = [await shop.user(), await shop.make()]
    const own = { project_id: shop.project.project_id, user_id: ann.id }
    const at = { created_at: now(), updated_at: now() }
    const filler = Array.from({ length: 998 }, () => ({
      ...{ id: newId(), organization_id: newId(), role: "member", permissions: [], ...own, ...at },
      environment_id: shop.application.environment_ids.live,
    }))
    await store.tx((tx) => tx.insert(memberships).values(filler))
    expect((await shop.seat(id, ann.id)).status).toBe(201)
    const refused = await ann.post(ORGANIZATIONS, { name: "One more" })
    expect([...refusal(refused), reason(refused)]).toEqual([409, "conflict", "too_many"])
    expect((await shop.server.get(`${ORGANIZATIONS}?q=one more`)).body.data).toEqual([])
  })
})

describe("roles", () => {
  test("let admins administer all but owners", async () => {
    const { shop, id, owner, admin, member, at } = await staffed()
    expect((await admin.patch(at(member.id), { role: "editor" })).body.data.role).toBe("editor")
    const beyond = [
      admin.patch(at(owner.id), { permissions: ["x"] }),
      admin.patch(at(member.id), { role: "owner" }),
      admin.patch(at(admin.id), { role: "owner" }),
      admin.remove(at(owner.id)),
      admin.remove(`${ORGANIZATIONS}/${id}`),
    ]
    for (const answer of await Promise.all(beyond)) {
      expect(refusal(answer)).toEqual([403, "forbidden"])
      expect(answer.body.error.details).toEqual({ required_role: "owner" })
    }
    const small = [member.patch(at(admin.id), { role: "member" }), member.remove(at(member.id))]
    for (const answer of await Promise.all(small))
      expect(answer.body.error.details).toEqual({ required_role: "admin" })
    expect((await member.get(membersOf(id))).body.data).toHaveLength(3)
    expect((await admin.remove(at(member.id))).body.data).toEqual({ id: member.id, deleted: true })
    expect(refusal(await admin.remove(at(member.id)))).toEqual([404, "not_found"])
    expect(refusal(await member.get(membersOf(id)))).toEqual([403, "forbidden"])
    expect(await shop.rolesIn(id)).toEqual({ [owner.id]: "owner", [admin.id]: "admin" })
    expect(await shop.wrongTotals()).toEqual([])
  })

  test("keep an owner in what has one, whoever asks", async () => {
    const { shop, id, owner, admin, at } = await staffed()
    const tries = [
      owner.post(leave(id)),
      owner.remove(at(owner.id)),
      owner.patch(at(owner.id), { role: "member" }),
      shop.server.patch(at(owner.id), { role: "admin" }),
      shop.server.remove(at(owner.id)),
    ]
    for (const answer of await Promise.all(tries))
      expect([...refusal(answer), reason(answer)]).toEqual([409, "conflict", "last_owner"])
    expect((await owner.patch(at(admin.id), { role: "owner" })).status).toBe(200)
    expect((await owner.post(leave(id))).body.data).toEqual({ success: true })
    const gone = await owner.post(leave(id))
    expect([...refusal(gone), gone.body.error.details.required_role]).toEqual([
      ...[403, "forbidden", "member"],
    ])
    expect((await shop.rolesIn(id))[admin.id]).toBe("owner")
  })

  test("keep one of two owners who leave at once", async () => {
    for (let round = 0; round < 5; round++) {
      const { shop, id, owner, admin, at } = await staffed()
      await shop.server.patch(at(admin.id), { role: "owner" })
      const left = await Promise.all([owner.post(leave(id)), admin.post(leave(id))])
      expect(left.map(({ status }) => status).sort()).toEqual([200, 409])
      expect(Object.values(await shop.rolesIn(id)).sort()).toEqual(["member", "owner"])
    }
  })

  test("need none where a server made the organization, nor where the owner is deleted", async () => {
    const { shop, id, owner, admin, at } = await staffed()
    expect((await shop.server.remove(`/v1/auth/users/${owner.id}`)).status).toBe(200)
    expect(Object.values(await shop.rolesIn(id)).sort()).toEqual(["admin", "member"])
    expect((await admin.post(leave(id))).status).toBe(200)
    const rest = Object.keys(await shop.rolesIn(id))
    expect((await shop.server.patch(at(rest[0] ?? ""), { role: "owner" })).status).toBe(200)
    expect(await shop.wrongTotals()).toEqual([])
  })
})

test("a user who joins while the organization is deleted is in nothing that is left", async () => {
  const shop = await organizationShop(service)
  for (let round = 0; round < 5; round++) {
    const [id, ann] = [await shop.make(), await shop.user()]
    await Promise.all([shop.seat(id, ann.id), shop.server.remove(`${ORGANIZATIONS}/${id}`)])
    const left = store.read.select().from(memberships).where(eq(memberships.organization_id, id))
    expect(await left).toEqual([])
  }
  expect(await shop.wrongTotals()).toEqual([])
})

test("a member is added once by requests at once", async () => {
  const shop = await organizationShop(service)
  const [id, ann] = [await shop.make(), await shop.user()]
  const answers = await Promise.all(Array.from({ length: 5 }, () => shop.seat(id, ann.id)))
  expect(answers.map(({ status }) => status).sort()).toEqual([201, 409, 409, 409, 409])
  await store.tx(async (tx) => {
    const [user] = await tx.select().from(users).where(eq(users.id, ann.id))
    const [row] = await tx.select().from(organizations).where(eq(organizations.id, id))
    if (user && row) expect(await joinOrganization(tx, user, row, "member")).toBeUndefined()
  })
  expect(await shop.wrongTotals()).toEqual([])
})
