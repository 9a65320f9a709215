import { describe, expect, test } from "bun:test"
import { withoutSecrets } from "../../src/audit-log/audit-log"
import { now } from "../../src/core/time"
import { refusal } from "../harness/client"
import { team } from "../harness/people"
import { sharedService } from "../harness/shared-service"

const service = await sharedService()
const LOG = "/v1/audit-log"

interface Entry {
  action: string
  actor: { id: string }
}

const actions = ({ body }: { body: { data: Entry[] } }) => body.data.map(({ action }) => action)

describe("the audit log", () => {
  test("tells who changed what, from where, before and after", async () => {
    const { owner, account_id } = await team(service)
    await owner.patch("/v1/accounts/me", { name: "Renamed" })
    const { body } = await owner.get(LOG)
    expect(body.data[0]).toEqual({
      id: expect.any(String),
      actor: { type: "user", id: owner.id, name: "Pat" },
      action: "account.updated",
      target: { type: "account", id: account_id },
      project_id: null,
      ip: "127.0.0.1",
      before: expect.objectContaining({ name: "Team" }),
      after: expect.objectContaining({ name: "Renamed" }),
      created_at: expect.any(String),
    })
    expect(actions({ body })).toEqual(["account.updated", "project.created", "account.created"])
    expect(body.meta.total).toBe(3)
  })

  test("holds every kind of change", async () => {
    const { owner, join, project_id } = await team(service)
    const member = await join("member")
    const project = (await owner.post("/v1/projects", { name: "x" })).body.data
    const at = `/v1/projects/${project_id}/members`
    const invite = { email: "new@people.test", role: "member" }
    const invited = await owner.post("/v1/accounts/me/members/invite", invite)
    const steps = [
      await owner.patch(`/v1/projects/${project.id}`, { name: "y" }),
      await owner.remove(`/v1/projects/${project.id}`, { confirm: "y" }),
      await owner.post(`/v1/projects/${project.id}/restore`),
      await owner.post(at, { user_id: member.id, role: "viewer" }),
      await owner.patch(`${at}/${member.id}`, { role: "admin" }),
      await owner.remove(`${at}/${member.id}`),
      await owner.post(`/v1/accounts/me/invitations/${invited.body.data.id}/resend`),
      await owner.remove(`/v1/accounts/me/invitations/${invited.body.data.id}`),
      await owner.patch(`/v1/accounts/me/members/${member.id}`, { role: "billing_admin" }),
      await owner.remove(`/v1/accounts/me/members/${member.id}`),
    ]
    expect(steps.filter(({ status }) => status > 299)).toEqual([])
    const told = await owner.get(`${LOG}?per_page=100`)
    expect(actions(told).slice(0, 12)).toEqual([
      "member.removed",
      "member.role_changed",
      "invitation.revoked",
      "invitation.resent",
      "project_member.removed",
      "project_member.role_changed",
      "project_member.added",
      "project.restored",
      "project.deleted",
      "project.updated",
      "invitation.created",
      "project.created",
    ])
    expect(told.text).not.toContain("token_hash")
  })

  test("says nothing of what was refused", async () => {
    const { owner } = await team(service)
    await owner.patch(`/v1/accounts/me/members/${owner.id}`, { role: "member" })
    await owner.remove("/v1/accounts/me", { confirm: "wrong" })
    expect(actions(await owner.get(LOG))).toEqual(["project.created", "account.created"])
  })

  test("is filtered by actor, action, target and time", async () => {
    const { owner, join } = await team(service)
    const admin = await join("admin")
    const before = now()
    await admin.post("/v1/projects", { name: "x" })
    expect(actions(await owner.get(`${LOG}?actor_id=${admin.id}`))).toEqual(["project.created"])
    expect(actions(await owner.get(`${LOG}?action=account.created`))).toEqual(["account.created"])
    const projects = await owner.get(`${LOG}?target_type=project&per_page=1`)
    expect([projects.body.data.length, projects.body.meta.total]).toEqual([1, 2])
    const early = await owner.get(`${LOG}?created_before=${before}`)
    expect(actions(early)).toEqual(["project.created", "account.created"])
    expect(actions(await owner.get(`${LOG}?created_after=${before}`))).toEqual(["project.created"])
    const wrong = await owner.get(`${LOG}?created_after=yesterday`)
    expect(refusal(wrong)).toEqual([422, "validation_error"])
  })

  test("is one's own, and nobody writes it", async () => {
    const [ours, theirs] = [await team(service), await team(service)]
    const { body } = await ours.owner.get(`${LOG}?actor_id=${theirs.owner.id}`)
    expect(body.data).toEqual([])
    for (const method of ["POST", "PUT", "PATCH", "DELETE"]) {
      expect((await ours.owner.call(method, LOG)).status).toBe(404)
    }
  })
})

test("secrets are left out by their names, at any depth", () => {
  const row = {
    name: "x",
    api_key_id: "kept",
    password_hash: "gone",
    key: "gone",
    nested: [{ token: "gone", mfa_secret: "gone", scopes: ["api_keys:read"] }],
  }
  expect(withoutSecrets(row)).toEqual({
    name: "x",
    api_key_id: "kept",
    nested: [{ scopes: ["api_keys:read"] }],
  })
})
