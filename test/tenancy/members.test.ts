import { describe, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { newId } from "../../src/core/ids"
import { accounts } from "../../src/identity/tables"
import { refusal } from "../harness/client"
import { type Person, person, team } from "../harness/people"
import { sharedService } from "../harness/shared-service"

const service = await sharedService()
const MEMBERS = "/v1/accounts/me/members"

const at = ({ id }: { id: string }) => `${MEMBERS}/${id}`
const ownerOf = async (account_id: string) => {
  const { store } = service
  const [row] = await store.read.select().from(accounts).where(eq(accounts.id, account_id))
  return row?.owner_user_id
}

describe("the list", () => {
  test("shows everybody with his role, newest first", async () => {
    const { owner, join } = await team(service)
    const member = await join("member")
    const { body } = await owner.get(MEMBERS)
    expect(body.data.map((one: { user_id: string }) => one.user_id)).toEqual([member.id, owner.id])
    expect(body.data[0]).toEqual({
      user_id: member.id,
      email: member.email,
      name: "Pat",
      role: "member",
      mfa_enabled: false,
      joined_at: expect.any(String),
      last_active_at: null,
    })
    expect(body.meta.total).toBe(2)
  })

  test("goes on by cursor, where several joined at one moment too", async () => {
    const { owner, join } = await team(service)
    for (let more = 0; more < 4; more++) await join("member")
    const seen: string[] = []
    let cursor = ""
    do {
      const { body } = await owner.get(`${MEMBERS}?per_page=2${cursor}`)
      seen.push(...body.data.map((one: { user_id: string }) => one.user_id))
      cursor = body.meta.next_cursor ? `&cursor=${body.meta.next_cursor}` : ""
    } while (cursor)
    expect([seen.length, new Set(seen).size]).toEqual([5, 5])
  })
})

test("who calls is seen to have been there", async () => {
  const { owner, join } = await team(service)
  const member = await join("member")
  expect((await member.get("/v1/accounts/me")).status).toBe(200)
  const lastActive = async () => {
    const { body } = await owner.get(MEMBERS)
    const list = body.data as { user_id: string; last_active_at: string | null }[]
    return list.find(({ user_id }) => user_id === member.id)?.last_active_at
  }
  while ((await lastActive()) === null) await Bun.sleep(5) // written beside the answer
  expect(await lastActive()).toMatch(/Z$/)
})

describe("roles", () => {
  test("whoever becomes a billing admin leaves the projects", async () => {
    const { owner, join, project_id } = await team(service)
    const member = await join("member")
    const people = `/v1/projects/${project_id}/members`
    await owner.post(people, { user_id: member.id, role: "developer" })
    expect((await member.get(`/v1/projects/${project_id}/members`)).status).toBe(200)
    await owner.patch(at(member), { role: "billing_admin" })
    const ids = (await owner.get(people)).body.data.map((one: { user_id: string }) => one.user_id)
    expect(ids).toEqual([owner.id])
    await owner.patch(at(member), { role: "member" })
    expect((await member.get(people)).status).toBe(404)
  })

  test("an admin changes members, an owner everybody", async () => {
    const { owner, join } = await team(service)
    const [admin, other] = [await join("admin"), await join("member")]
    const changed = await admin.patch(at(other), { role: "billing_admin" })
    expect([changed.status, changed.body.data.role]).toEqual([200, "billing_admin"])
    expect((await other.get("/v1/accounts")).body.data[0].role).toBe("billing_admin")
    for (const [who, role] of [
      [other, "admin"],
      [other, "owner"],
      [admin, "member"],
      [owner, "member"],
    ] as [Person, string][]) {
      const refused = await admin.patch(at(who), { role })
      expect(refusal(refused)).toEqual([403, "forbidden"])
      expect(refused.body.error.details).toEqual({ required_role: "owner" })
    }
    expect((await owner.patch(at(admin), { role: "member" })).status).toBe(200)
    expect(refusal(await admin.patch(at(other), { role: "member" }))).toEqual([403, "forbidden"])
  })

  test("act at the next request", async () => {
    const { owner, join } = await team(service)
    const admin = await join("admin")
    expect((await admin.get("/v1/audit-log")).status).toBe(200)
    await owner.patch(at(admin), { role: "member" })
    expect((await admin.get("/v1/audit-log")).status).toBe(403)
  })

  test("the last owner stays one", async () => {
    const { owner, join, account_id } = await team(service)
    const refused = await owner.patch(at(owner), { role: "admin" })
    expect(refusal(refused)).toEqual([409, "conflict"])
    expect(refused.body.error.details).toEqual({ reason: "last_owner", id: owner.id })
    const second = await join("member")
    await owner.patch(at(second), { role: "owner" })
    expect(await ownerOf(account_id)).toBe(owner.id)
    expect((await owner.patch(at(owner), { role: "admin" })).status).toBe(200)
    expect(await ownerOf(account_id)).toBe(second.id)
  })

  test("of two owners that step down at once, one stays", async () => {
    const { owner, join } = await team(service)
    const second = await join("owner")
    const both = await Promise.all([
      owner.patch(at(owner), { role: "member" }),
      second.patch(at(second), { role: "member" }),
    ])
    expect(both.map(({ status }) => status).sort()).toEqual([200, 409])
  })

  test("there are four", async () => {
    const { owner, join } = await team(service)
    const refused = await owner.patch(at(await join("member")), { role: "king" })
    expect(refusal(refused)).toEqual([422, "validation_error"])
  })
})

describe("going", () => {
  test("an admin sends a member away, whose roles end with that", async () => {
    const { owner, join, project_id } = await team(service)
    const [admin, member] = [await join("admin"), await join("member")]
    await owner.post(`/v1/projects/${project_id}/members`, { user_id: member.id, role: "viewer" })
    const gone = await admin.remove(at(member))
    expect(gone.body.data).toEqual({ id: member.id, deleted: true })
    expect(refusal(await member.get(`/v1/projects/${project_id}`))[0]).toBeOneOf([403, 404])
    expect(refusal(await admin.remove(at(member)))).toEqual([404, "not_found"])
    const { body } = await owner.get(`/v1/projects/${project_id}/members`)
    expect(body.data.map((one: { user_id: string }) => one.user_id)).not.toContain(member.id)
  })

  test.each(["admin", "billing_admin", "member"] as const)("a %s may go himself", async (role) => {
    const { join } = await team(service)
    const leaver = await join(role)
    expect((await leaver.remove(at(leaver))).status).toBe(200)
    expect((await leaver.get("/v1/accounts")).body.data).toEqual([])
  })

  test("a member sends nobody away, an admin no owner, and the last owner stays", async () => {
    const { owner, join } = await team(service)
    const [admin, member] = [await join("admin"), await join("member")]
    expect(refusal(await member.remove(at(admin)))).toEqual([403, "forbidden"])
    expect(refusal(await admin.remove(at(owner)))).toEqual([403, "forbidden"])
    expect(refusal(await owner.remove(at(owner)))).toEqual([409, "conflict"])
  })
})

test("strangers of another account are like nobody", async () => {
  const [ours, theirs] = [await team(service), await team(service)]
  for (const method of ["PATCH", "DELETE"]) {
    const body = { role: "member" }
    const foreign = await ours.owner.call(method, at(theirs.owner), { body })
    const absent = await ours.owner.call(method, at({ id: newId() }), { body })
    const nonsense = await ours.owner.call(method, at({ id: "x" }), { body })
    expect(refusal(foreign)).toEqual([404, "not_found"])
    expect([foreign.body.error, nonsense.body.error]).toEqual([
      absent.body.error,
      absent.body.error,
    ])
  }
  expect((await theirs.owner.get("/v1/accounts")).body.data[0].role).toBe("owner")
})

test("somebody without any account is told so", async () => {
  const loner = await person(service)
  expect(refusal(await loner.get(MEMBERS))).toEqual([403, "forbidden"])
})
