import { describe, expect, test } from "bun:test"
import { newId } from "../../src/core/ids"
import { refusal } from "../harness/client"
import { team } from "../harness/people"
import { sharedService } from "../harness/shared-service"

const service = await sharedService()
const at = (project_id: string, user_id = "") =>
  `/v1/projects/${project_id}/members${user_id && `/${user_id}`}`

describe("the members of a project", () => {
  test("are those added, and the owners and admins of the account", async () => {
    const { owner, join, project_id } = await team(service)
    const [admin, member] = [await join("admin"), await join("member")]
    await join("billing_admin")
    await join("member")
    const added = await owner.post(at(project_id), { user_id: member.id, role: "developer" })
    expect(added.status).toBe(201)
    expect(added.body.data).toEqual({
      user_id: member.id,
      email: member.email,
      name: "Pat",
      role: "developer",
      inherited: false,
      added_at: expect.any(String),
    })
    const { body } = await owner.get(at(project_id))
    const shown = body.data.map((one: Record<string, unknown>) => [
      one.user_id,
      one.role,
      one.inherited,
    ])
    expect(shown).toEqual([
      [member.id, "developer", false],
      [admin.id, "admin", true],
      [owner.id, "admin", true],
    ])
    expect(body.meta.total).toBe(3)
    const page = await owner.get(`${at(project_id)}?per_page=1`)
    const rest = await owner.get(`${at(project_id)}?cursor=${page.body.meta.next_cursor}`)
    expect([...page.body.data, ...rest.body.data]).toEqual(body.data)
  })

  test("by address too, once, and only members of the account", async () => {
    const [ours, theirs] = [await team(service), await team(service)]
    const { owner, join, project_id } = ours
    const member = await join("member")
    const add = (who: object) => owner.post(at(project_id), { role: "viewer", ...who })
    expect((await add({ email: member.email.toUpperCase() })).status).toBe(201)
    const twice = await add({ user_id: member.id })
    expect(refusal(twice)).toEqual([409, "conflict"])
    expect(twice.body.error.details).toEqual({ reason: "already_member", id: member.id })

    const foreign = await add({ user_id: theirs.owner.id })
    expect(refusal(foreign)).toEqual([404, "user_not_found"])
    expect((await add({ user_id: newId() })).body.error).toEqual(foreign.body.error)
    expect((await add({ email: theirs.owner.email })).body.error).toEqual(foreign.body.error)
    expect(refusal(await add({}))).toEqual([422, "missing_required_field"])
    expect(refusal(await add({ email: "x" }))).toEqual([422, "invalid_email"])
    const both = await add({ email: member.email, user_id: member.id })
    expect(refusal(both)).toEqual([422, "validation_error"])
  })

  test("those who come with the account are not changed here", async () => {
    const { owner, join, project_id } = await team(service)
    const [admin, billing] = [await join("admin"), await join("billing_admin")]
    const role = { role: "viewer" }
    for (const answer of [
      await owner.post(at(project_id), { user_id: admin.id, ...role }),
      await owner.patch(at(project_id, admin.id), role),
      await owner.remove(at(project_id, admin.id)),
    ]) {
      expect(refusal(answer)).toEqual([409, "conflict"])
      expect(answer.body.error.details).toEqual({ reason: "inherited", id: admin.id })
    }
    const refused = await owner.post(at(project_id), { user_id: billing.id, ...role })
    expect(refused.body.error.details.reason).toBe("billing_admin")
  })

  test("change and go", async () => {
    const { owner, join, project_id } = await team(service)
    const member = await join("member")
    const missing = await owner.patch(at(project_id, member.id), { role: "viewer" })
    expect(refusal(missing)).toEqual([404, "not_found"])
    await owner.post(at(project_id), { user_id: member.id, role: "viewer" })
    const changed = await owner.patch(at(project_id, member.id), { role: "admin" })
    expect(changed.body.data.role).toBe("admin")
    const gone = await owner.remove(at(project_id, member.id))
    expect(gone.body.data).toEqual({ id: member.id, deleted: true })
    expect(refusal(await owner.remove(at(project_id, member.id)))).toEqual([404, "not_found"])
    expect(refusal(await member.get(at(project_id)))).toEqual([404, "not_found"])
  })

  test("are seen by viewers and changed by admins", async () => {
    const { owner, join, project_id } = await team(service)
    const [viewer, other] = [await join("member"), await join("member")]
    await owner.post(at(project_id), { user_id: viewer.id, role: "viewer" })
    expect((await viewer.get(at(project_id))).status).toBe(200)
    const body = { user_id: other.id, role: "viewer" }
    expect(refusal(await viewer.post(at(project_id), body))).toEqual([403, "forbidden"])
    await owner.patch(at(project_id, viewer.id), { role: "admin" })
    expect((await viewer.post(at(project_id), body)).status).toBe(201)
  })
})
