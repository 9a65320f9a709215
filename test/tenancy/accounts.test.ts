import { describe, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { newId } from "../../src/core/ids"
import { accounts } from "../../src/identity/tables"
import { refusal } from "../harness/client"
import { giveMfa, person, team } from "../harness/people"
import { sharedService } from "../harness/shared-service"

const service = await sharedService()
const { store } = service

const setPlan = (id: string, plan: string) =>
  store.tx((tx) => tx.update(accounts).set({ plan }).where(eq(accounts.id, id)))

describe("making accounts", () => {
  test("whoever makes one owns it", async () => {
    const pat = await person(service)
    const made = await pat.post("/v1/accounts", { name: "Große Küche" })
    expect(made.status).toBe(201)
    expect(made.body.data).toMatchObject({
      name: "Große Küche",
      slug: "grosse-kuche",
      plan: "enterprise",
      status: "active",
      sending_status: "active",
      sending_status_reason: null,
      settings: { track_opens: false, track_clicks: false, require_mfa: false },
    })
    expect(made.body.data.limits.projects).toBeNull()
    expect(made.body.data.usage.email).toEqual({ used: 0, limit: null, remaining: null })

    const { body } = await pat.get("/v1/accounts")
    expect(body.data).toEqual([{ ...made.body.data, role: "owner" }])
    expect(body.meta).toMatchObject({ page: 1, total: 1, has_more: false })
  })

  test("a slug wished for is given once, another is made up", async () => {
    const pat = await person(service)
    const slug = `s-${newId()}`
    expect((await pat.post("/v1/accounts", { name: slug })).body.data.slug).toBe(slug.slice(0, 38))
    expect((await pat.post("/v1/accounts", { name: "x", slug: "-x-" })).status).toBe(422)
    const again = await pat.post("/v1/accounts", { name: "x", slug })
    expect(refusal(again)).toEqual([409, "conflict"])
    expect(again.body.error.details).toEqual({ reason: "slug_taken", id: null })
    expect((await pat.post("/v1/accounts", { name: slug })).body.data.slug).toStartWith(`${slug}-`)
  })

  test("names of one line only", async () => {
    const pat = await person(service)
    for (const name of ["", "a\nb", "a\u2028b", 7, null]) {
      expect(refusal(await pat.post("/v1/accounts", { name }))[0]).toBe(422)
    }
  })

  test("the same Idempotency-Key makes one account, and another person's key is another", async () => {
    const [pat, kim] = [await person(service), await person(service)]
    const key = { "idempotency-key": newId() }
    const first = await pat.post("/v1/accounts", { name: "Once" }, key)
    const second = await pat.post("/v1/accounts", { name: "Once" }, key)
    expect(second.body.data).toEqual(first.body.data)
    expect(second.headers.get("idempotent-replayed")).toBe("true")
    const other = await kim.post("/v1/accounts", { name: "Once" }, key)
    expect(other.body.data.id).not.toBe(first.body.data.id)
  })

  test("lists page by page, with pages and with cursors", async () => {
    const pat = await person(service)
    for (const name of ["a", "b", "c"]) await pat.post("/v1/accounts", { name })
    const names = ({ body }: { body: { data: { name: string }[] } }) =>
      body.data.map((one) => one.name)
    const first = await pat.get("/v1/accounts?per_page=2")
    expect(names(first)).toEqual(["c", "b"])
    expect(names(await pat.get("/v1/accounts?per_page=2&page=2"))).toEqual(["a"])
    const rest = await pat.get(`/v1/accounts?per_page=2&cursor=${first.body.meta.next_cursor}`)
    expect(names(rest)).toEqual(["a"])
    expect(rest.body.meta.total).toBeNull()
  })
})

describe("free accounts", () => {
  test("nobody takes a third one over", async () => {
    const [one, two, three] = [
      await team(service),
      await team(service),
      await team(service, "free"),
    ]
    const { owner } = one
    await setPlan(one.account_id, "free")
    await setPlan(two.account_id, "free")
    await store.tx(async (tx) => {
      const { seat } = await import("../../src/tenancy/accounts")
      await seat(tx, two.account_id, owner.id, "owner")
      await seat(tx, three.account_id, owner.id, "member")
    })
    const transfer = await three.owner.post("/v1/accounts/me/transfer", { user_id: owner.id })
    expect(refusal(transfer)).toEqual([403, "plan_limit_exceeded"])
    expect(transfer.body.error.details).toEqual({
      resource: "accounts",
      used: 2,
      limit: 2,
      plan: "free",
    })
    const path = `/v1/accounts/me/members/${owner.id}`
    const lifted = await three.owner.patch(path, { role: "owner" })
    expect(refusal(lifted)).toEqual([403, "plan_limit_exceeded"])
  })
})

describe("the account one works in", () => {
  test("is found by itself, or by its header where there are several", async () => {
    const { owner, account_id } = await team(service)
    expect((await owner.get("/v1/accounts/me")).body.data.id).toBe(account_id)
    const other = (await owner.post("/v1/accounts", { name: "Second" })).body.data
    const unclear = await owner.get("/v1/accounts/me")
    expect(refusal(unclear)).toEqual([422, "missing_required_field"])
    const named = await owner.get("/v1/accounts/me", { "x-account-id": other.id })
    expect(named.body.data.id).toBe(other.id)
  })

  test("another team's answers like none", async () => {
    const [ours, theirs] = [await team(service), await team(service)]
    const [foreign, absent] = await Promise.all([
      ours.owner.get("/v1/accounts/me", { "x-account-id": theirs.account_id }),
      ours.owner.get("/v1/accounts/me", { "x-account-id": newId() }),
    ])
    expect(refusal(foreign)).toEqual([404, "not_found"])
    expect(foreign.body.error).toEqual(absent.body.error)
  })

  test("a key with usage:read sees it, one without does not", async () => {
    const project = await service.project({ scopes: ["usage:read"] })
    expect((await project.get("/v1/accounts/me")).body.data.id).toBe(project.account_id)
    const { key } = await project.addKey({ scopes: ["email:read"] })
    const refused = await service.anybody.get("/v1/accounts/me", { "x-api-key": key })
    expect(refusal(refused)).toEqual([403, "forbidden"])
  })

  test("roles decide what of it is reached", async () => {
    const { owner, join } = await team(service)
    const people = {
      owner,
      admin: await join("admin"),
      billing: await join("billing_admin"),
      member: await join("member"),
    }
    const reach = async (path: string) => {
      const answers = Object.entries(people).map(async ([name, one]) => {
        const { status } = await one.get(path)
        return status === 200 ? name : undefined
      })
      return (await Promise.all(answers)).filter(Boolean)
    }
    expect(await reach("/v1/accounts/me")).toEqual(["owner", "admin", "billing", "member"])
    expect(await reach("/v1/accounts/me/plan")).toEqual(["owner", "admin", "billing"])
    expect(await reach("/v1/accounts/me/resource-counts")).toEqual(["owner", "admin", "billing"])
    expect(await reach("/v1/accounts/me/project-breakdown")).toEqual(["owner", "admin", "billing"])
    expect(await reach("/v1/accounts/me/members")).toEqual(["owner", "admin", "member"])
    expect(await reach("/v1/accounts/me/projects")).toEqual(["owner", "admin", "member"])
    expect(await reach("/v1/accounts/me/invitations")).toEqual(["owner", "admin"])
    expect(await reach("/v1/audit-log")).toEqual(["owner", "admin"])
  })

  test("name and settings change, one by one; what is unknown is not kept", async () => {
    const { owner } = await team(service)
    const settings = { track_opens: true, colour: "red" }
    const changed = await owner.patch("/v1/accounts/me", { name: "New", settings })
    expect(changed.body.data.name).toBe("New")
    expect(changed.body.data.settings).toEqual({
      track_opens: true,
      track_clicks: false,
      require_mfa: false,
    })
    expect((await owner.get("/v1/accounts/me")).body.data).toEqual(changed.body.data)
    const wrong = await owner.patch("/v1/accounts/me", { settings: { track_opens: "no" } })
    expect(refusal(wrong)).toEqual([422, "validation_error"])
  })

  test("a second factor is demanded only by somebody who has one", async () => {
    const { owner, join } = await team(service)
    const member = await join("member")
    const ask = () => owner.patch("/v1/accounts/me", { settings: { require_mfa: true } })
    expect(refusal(await ask())).toEqual([403, "mfa_required"])
    await giveMfa(service, owner)
    expect((await ask()).status).toBe(200)
    expect(refusal(await member.get("/v1/accounts/me"))).toEqual([403, "mfa_required"])
  })
})

describe("deleting an account", () => {
  test("needs its name, and an owner", async () => {
    const { owner, join } = await team(service)
    const admin = await join("admin")
    const wrong = await owner.remove("/v1/accounts/me", { confirm: "team" })
    expect(refusal(wrong)).toEqual([422, "validation_error"])
    expect(refusal(await owner.remove("/v1/accounts/me"))[0]).toBe(422)
    expect(refusal(await admin.remove("/v1/accounts/me", { confirm: "Team" }))[0]).toBe(403)
  })

  test("stops it at once, and it can be taken back", async () => {
    const { owner, account_id, join } = await team(service)
    const member = await join("member")
    const confirm = { confirm: "Team" }
    const gone = await owner.remove("/v1/accounts/me", confirm)
    expect(gone.body.data).toEqual({ id: account_id, deleted: true })
    const named = { "x-account-id": account_id }
    expect(refusal(await owner.get("/v1/accounts/me", named))).toEqual([404, "not_found"])
    expect(refusal(await owner.remove("/v1/accounts/me", confirm, named))[0]).toBe(404)
    expect((await owner.get("/v1/accounts")).body.data).toEqual([])
    expect((await member.get("/v1/accounts/me")).status).not.toBe(200)

    const back = await owner.post("/v1/accounts/me/restore", undefined, named)
    expect([back.status, back.body.data.id]).toEqual([200, account_id])
    expect((await member.get("/v1/accounts/me")).status).toBe(200)
    const again = await owner.post("/v1/accounts/me/restore", undefined, named)
    expect(refusal(again)).toEqual([409, "conflict"])
  })

  test("ends its keys while it lasts", async () => {
    const project = await service.project()
    const set = (deleting_at: string | null) =>
      store.tx((tx) =>
        tx.update(accounts).set({ deleting_at }).where(eq(accounts.id, project.account_id)),
      )
    await set(new Date(Date.parse("2030-01-01")).toISOString())
    expect(refusal(await project.get("/v1/emails"))).toEqual([401, "unauthorized"])
    await set(null)
    expect((await project.get("/v1/emails")).status).toBe(200)
  })
})

describe("transfer", () => {
  test("hands the account to a member and leaves an admin", async () => {
    const { owner, account_id, join } = await team(service)
    const heir = await join("member")
    const moved = await owner.post("/v1/accounts/me/transfer", { user_id: heir.id })
    expect([moved.status, moved.body.data.id]).toEqual([200, account_id])
    const roles = async (who: typeof owner) => (await who.get("/v1/accounts")).body.data[0].role
    expect([await roles(owner), await roles(heir)]).toEqual(["admin", "owner"])
    expect((await owner.post("/v1/accounts/me/transfer", { user_id: owner.id })).status).toBe(403)
  })

  test("not to oneself, nor to a stranger", async () => {
    const [ours, theirs] = [await team(service), await team(service)]
    const give = (user_id: string) => ours.owner.post("/v1/accounts/me/transfer", { user_id })
    expect(refusal(await give(ours.owner.id))).toEqual([409, "conflict"])
    const [foreign, absent] = [await give(theirs.owner.id), await give(newId())]
    expect(refusal(foreign)).toEqual([404, "user_not_found"])
    expect(foreign.body.error).toEqual(absent.body.error)
    expect(refusal(await give("x"))).toEqual([404, "user_not_found"])
  })
})

describe("what the bill is made of", () => {
  test("plan, limits, features and usage", async () => {
    const { owner } = await team(service, "starter")
    const { data } = (await owner.get("/v1/accounts/me/plan")).body
    expect(data.plan).toBe("starter")
    expect(data.limits).toMatchObject({ projects: 3, emails_per_month: 50_000 })
    expect(data.features).toMatchObject({ smtp_submission: true })
    expect(data.usage.email).toEqual({ used: 0, limit: 50_000, remaining: 50_000 })
  })

  test("resource counts", async () => {
    const { owner, join } = await team(service, "pro")
    await join("member")
    await owner.post("/v1/subscribers", { external_id: "user-1" })
    const { data } = (await owner.get("/v1/accounts/me/resource-counts")).body
    expect(data.subscribers).toEqual({ used: 1, limit: null })
    expect(data.projects).toEqual({ used: 1, limit: 10 })
    expect(data.members).toEqual({ used: 2, limit: null })
    expect(data.api_keys).toEqual({ used: 0, limit: null })
    const names = "projects webhooks domains subscribers templates api_keys organizations members"
    expect(Object.keys(data)).toEqual(names.split(" "))
  })

  test("a month by project", async () => {
    const { owner, project_id } = await team(service)
    await owner.post("/v1/subscribers", { external_id: "user-1" })
    const { data } = (await owner.get("/v1/accounts/me/project-breakdown")).body
    expect(data).toEqual([
      {
        project_id,
        name: "Default",
        usage: { email: 0, push: 0, sms: 0, in_app: 0, mau: 0 },
        resources: { domains: 0, webhooks: 0, templates: 0, subscribers: 1, api_keys: 0 },
      },
    ])
    const wrong = await owner.get("/v1/accounts/me/project-breakdown?period=2026-13")
    expect(refusal(wrong)).toEqual([422, "validation_error"])
  })
})
