import { describe, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { login } from "../../src/auth/login"
import { userSessions, users } from "../../src/auth/tables"
import { newId } from "../../src/core/ids"
import { newApplication } from "../harness/application"
import { refusal } from "../harness/client"
import { sharedService } from "../harness/shared-service"

const service = await sharedService()
const PATH = "/v1/auth/users"
const PASSWORD = "correct-Horse-7"

async function shop(auto_link_users = true) {
  const project = await service.project()
  const app = await newApplication(service, project)
  await project.call("PATCH", "/v1/settings", { body: { auto_link_users } })
  const add = async (fields: object = {}) => {
    const wanted = { email: `${newId()}@people.test`, email_verified: true, ...fields }
    return (await project.post(PATH, wanted)).body.data
  }
  const find = async (id: string) => (await project.get(`${PATH}/${id}`)).body.data
  const signIn = async (email: string) =>
    login(service.parts.auth, await app.environment(), { email, password: PASSWORD }, NOWHERE)
  return { project, add, find, signIn }
}

const NOWHERE = { ip: "192.0.2.7", user_agent: "Firefox" }

describe("a verified user of a project that links users", () => {
  test("is a subscriber with their id, which follows them", async () => {
    const { project, add, find } = await shop()
    const user = await add({ name: "Ann", locale: "de", phone_number: "+4915112345678" })
    const external = () => project.get(`/v1/subscribers/external/${user.id}`)
    const { data } = (await external()).body
    expect(data).toMatchObject({
      ...{ id: user.subscriber_id, auth_user_id: user.id, external_id: user.id },
      ...{ email: user.email, phone: null, name: "Ann", locale: "de" },
    })
    const change = { name: "Ann Example", phone_verified: true }
    await project.call("PATCH", `${PATH}/${user.id}`, { body: change })
    expect((await external()).body.data).toMatchObject({
      ...{ name: "Ann Example", phone: "+4915112345678" },
    })
    await project.call("DELETE", `/v1/subscribers/${data.id}`)
    expect((await find(user.id)).subscriber_id).toBeNull()
  })

  test("follows a merge, and leaves the subscriber when they are deleted", async () => {
    const { project, add, find } = await shop()
    const user = await add({ name: "Ann" })
    const kept = (await project.post("/v1/subscribers", { external_id: "crm-1" })).body.data
    await project.post(`/v1/subscribers/${kept.id}/merge`, { from_id: user.subscriber_id })
    expect((await find(user.id)).subscriber_id).toBe(kept.id)
    await project.call("PATCH", `${PATH}/${user.id}`, { body: { name: "Ann B" } })
    const shown = async () => (await project.get(`/v1/subscribers/${kept.id}`)).body.data
    expect(await shown()).toMatchObject({ name: "Ann B", auth_user_id: user.id })
    await project.call("DELETE", `${PATH}/${user.id}`)
    expect(await shown()).toMatchObject({ external_id: "crm-1", auth_user_id: null })
  })

  test("is linked at the next sign-in, if the setting came later", async () => {
    const { project, add, find, signIn } = await shop(false)
    const user = await add({ password: PASSWORD })
    expect(user.subscriber_id).toBeNull()
    await project.call("PATCH", "/v1/settings", { body: { auto_link_users: true } })
    await signIn(user.email)
    expect((await find(user.id)).subscriber_id).not.toBeNull()
  })
})

test("a user whose address nobody verified is no subscriber", async () => {
  const { project, add } = await shop()
  const user = await add({ email_verified: false })
  expect(user.subscriber_id).toBeNull()
  const found = await project.get(`/v1/subscribers/external/${user.id}`)
  expect(refusal(found)).toEqual([404, "subscriber_not_found"])
})

describe("the end user that a subscriber is", () => {
  test("is in its export and goes with its erasure", async () => {
    const { project, add, signIn } = await shop()
    const user = await add({ password: PASSWORD })
    const other = await add()
    await signIn(user.email)
    const { id } = (await project.get(`/v1/subscribers/${user.subscriber_id}`)).body.data
    const whole = (await project.get(`/v1/subscribers/${id}/export`)).body.data
    expect(whole.users).toMatchObject([{ id: user.id }])
    expect(whole.user_sessions).toMatchObject([{ ip: "192.0.2.7" }])
    expect(whole.memberships).toMatchObject([{ end_user_id: user.id, role: "member" }])
    expect(whole.events.map(({ type }: { type: string }) => type)).toContain("user.login")
    const erased = await project.post(`/v1/subscribers/${id}/erase`, { confirm: user.id })
    expect(erased.body.data.counts.users).toBe(1)
    const { read } = service.store
    expect(await read.select().from(users).where(eq(users.id, user.id))).toEqual([])
    const left = read.select().from(userSessions).where(eq(userSessions.user_id, user.id))
    expect(await left).toEqual([])
    const told = (await project.get("/v1/events?types=user.created")).body.data
    expect(JSON.stringify(told)).not.toContain(user.id)
    expect(JSON.stringify(told)).toContain(other.id)
  })

  test("may only share its address", async () => {
    const { project, add } = await shop(false)
    const { id, email } = await add()
    const person = { external_id: "crm-1", email: email.toUpperCase() }
    const { data } = (await project.post("/v1/subscribers", person)).body
    const whole = (await project.get(`/v1/subscribers/${data.id}/export`)).body.data
    expect(whole.users).toMatchObject([{ id }])
    await project.post(`/v1/subscribers/${data.id}/erase`, { confirm: "crm-1" })
    expect(refusal(await project.get(`${PATH}/${id}`))).toEqual([404, "user_not_found"])
  })
})
